#include <cstdlib>

// A library for LD_PRELOAD, by which a whole program gets a fault: stretto/base/file_faults.h.
extern "C" const char* stretto_file_fault();
extern "C" const char* stretto_file_fault() { return std::getenv("STRETTO_FILE_FAULT"); }
