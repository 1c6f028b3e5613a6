#pragma once

#include <functional>

namespace stretto::cli {

// Calls `body` in a child process and returns the exit code that it returns, or 128 + the number of the signal that has ended the
// child. An exception of `body` is logged, and its exit code is that of the child. Signals that ask this process to end (Ctrl-C,
// SIGTERM), and SIGUSR1, are passed on to the child once; its end is waited for, for it may save first. REQUIRES: this process has
// no other thread. Throws IoError if there can be no child.
int run_in_child(const std::function<int()>& body);

}  // namespace stretto::cli
