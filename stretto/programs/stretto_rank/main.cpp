#include <unistd.h>

#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/programs/stretto_rank/command.h"

// The program of stretto's ranks.
int main(int argc, char** argv) {
  stretto::fill_standard_descriptors();
  stretto::block_save_signal();
  const int code = stretto::rank::run_command(argc, argv);
  stretto::log::flush();
  // Skips libtorch's global destructors, which take 0.25 s.
  ::_exit(code);
}
