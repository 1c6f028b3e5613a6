#pragma once

#include <functional>

namespace stretto::cli {

// Calls `body` in a child process and returns its exit code, or 128 + the number of the signal that has ended
// the child. An exception of `body` is logged, and its exit code is returned. Signals that ask this process
// to end (Ctrl-C, SIGTERM), and SIGUSR1, are passed on to the child once; the call then still waits for the
// child, which may save first. REQUIRES: this process has no other thread. Throws IoError if no process can
// be created.
int run_in_child(const std::function<int()>& body);

}  // namespace stretto::cli
