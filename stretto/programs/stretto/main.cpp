#include "stretto/base/process.h"
#include "stretto/programs/stretto/command.h"

// The `stretto` command. It does not link libtorch, so that verbs which do not need it start within
// milliseconds.
int main(int argc, char** argv) {
  stretto::fill_standard_descriptors();
  stretto::block_save_signal();
  return stretto::cli::run_command(argc, argv);
}
