#pragma once

#include <string>

namespace stretto::arguments {

// The message and exit code of a failed program.
struct Failure {
  std::string message;
  int exit_code = 1;
};

// Describes the exception being handled. The exit code is that of an Error, 2 for a DataError, which a
// restart would repeat, 1 for inaccessible paths and lack of memory, and 70 for other exceptions. REQUIRES:
// called in a catch block.
Failure describe_exception();

}  // namespace stretto::arguments
