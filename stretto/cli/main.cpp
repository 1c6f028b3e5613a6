#include "stretto/base/process.h"
#include "stretto/cli/command.h"

// The `stretto` command. It links no libtorch, so every verb that needs none answers in milliseconds.
int main(int argc, char** argv) {
  stretto::fill_standard_descriptors();
  stretto::hold_save_requests();
  return stretto::cli::run_command(argc, argv);
}
