#pragma once

#include <string>

namespace stretto::command {

// Why a program ends, as its user reads it.
struct Failure {
  std::string message;
  int exit_code = 1;
};

// What to report of the exception that is being handled. An Error has its own exit code; a path that the system refuses
// and a lack of memory give 1, and what nobody expected 70. REQUIRES: called in a catch block.
Failure describe_exception();

}  // namespace stretto::command
