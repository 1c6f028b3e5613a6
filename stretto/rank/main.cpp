#include <unistd.h>

#include "stretto/base/log.h"
#include "stretto/rank/command.h"

int main(int argc, char** argv) {
  const int code = stretto::rank::run_command(argc, argv);
  stretto::log::flush();
  // libtorch's global destructors take a quarter of a second and have nothing left to do.
  ::_exit(code);
}
