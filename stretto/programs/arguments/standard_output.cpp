#include "stretto/programs/arguments/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <unistd.h>

#include "stretto/base/error.h"

namespace stretto::arguments {

void flush_standard_output() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return;
  // errno may be stale if an earlier write failed, so another write sets it.
  const bool fails = ::write(STDOUT_FILENO, "\n", 1) < 0;
  throw IoError("cannot write to standard output: {}", fails ? std::strerror(errno) : "write error");
}

}  // namespace stretto::arguments
