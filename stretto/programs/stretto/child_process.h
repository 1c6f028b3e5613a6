#pragma once

#include <functional>

namespace stretto::cli {

// Exit codes of a child that trains or tests: it was refused before it began, or it has saved after Ctrl-C or
// SIGTERM (LaunchArguments::stop_exit_code).
inline constexpr int exit_refused = 2;
inline constexpr int exit_stopped = 75;

// How a child process ended.
struct ChildEnd {
  int exit_code = 0;    // 128 + n if signal n killed it
  int end_request = 0;  // the last signal that asked this process to end meanwhile; 0: none
};

// Calls `body` in a child process, whose exit code is the result of `body`. An exception of `body` is logged
// and determines the exit code. Signals that ask this process to end (Ctrl-C, SIGTERM), and SIGUSR1, are
// passed on to the child once; this process waits for the end of the child, which may save first. REQUIRES:
// this process has no other thread. Throws IoError if no child can be created.
ChildEnd run_in_child(const std::function<int()>& body);

}  // namespace stretto::cli
