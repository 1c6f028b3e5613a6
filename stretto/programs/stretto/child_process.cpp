#include "stretto/programs/stretto/child_process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/launch/process/signals.h"
#include "stretto/programs/arguments/failure.h"

namespace stretto::cli {
namespace {

[[noreturn]] void run_child(const std::function<int()>& body, const launch::SignalGuard& signals,
                            pid_t parent) {
  ::setpgid(0, 0);  // Ctrl-C reaches the parent only, which passes it on
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);  // it died before the line above
  signals.restore_for_child(/*hold_save=*/true);
  int code = EXIT_FAILURE;
  try {
    code = body();
  } catch (...) {
    const arguments::Failure failure = arguments::describe_exception();
    log::error("{}", failure.message);
    code = failure.exit_code;
  }
  log::flush();
  ::_exit(code);
}

}  // namespace

ChildEnd run_in_child(const std::function<int()>& body) {
  log::flush();
  const launch::SignalGuard signals;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw IoError("cannot start a process: {}", std::strerror(errno));
  if (child == 0) run_child(body, signals, parent);
  ::setpgid(child, child);  // both parent and child call it, so that the group exists whichever runs first
  ChildEnd end;
  const auto read_signals = [&](bool passes_on) {
    while (const auto signal = signals.next()) {
      const bool asks = launch::asks_to_end(*signal);
      if (asks) end.end_request = *signal;
      if (passes_on && (asks || *signal == SIGUSR1)) ::kill(child, *signal);
    }
  };
  while (true) {
    read_signals(/*passes_on=*/true);
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) throw IoError("cannot wait for a process: {}", std::strerror(errno));
    if (ended == child) {
      read_signals(/*passes_on=*/false);
      end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return end;
    }
    pollfd readable{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, -1);
  }
}

}  // namespace stretto::cli
