#pragma once

#include <functional>

namespace stretto::cli {

// How a child process ended.
struct ChildEnd {
  int exit_code = 0;    // 128 + n if signal n killed it
  int end_request = 0;  // the last signal that asked this process to end in the meantime; 0: none
};

// Calls `body` in a child process, whose exit code is the result of `body`. An exception of `body` is logged,
// and its exit code is that of the child. Signals that ask this process to end (Ctrl-C, SIGTERM), and
// SIGUSR1, are passed on to the child once; its end is waited for, for it may save first. REQUIRES: this
// process has no other thread. Throws IoError if there can be no child.
ChildEnd run_in_child(const std::function<int()>& body);

}  // namespace stretto::cli
