#include <unistd.h>

#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/programs/stretto_rank/command.h"

int main(int argc, char** argv) {
  stretto::fill_standard_descriptors();
  stretto::hold_save_requests();
  const int code = stretto::rank::run_command(argc, argv);
  stretto::log::flush();
  // Skips libtorch's global destructors, which take 0.25 s.
  ::_exit(code);
}
