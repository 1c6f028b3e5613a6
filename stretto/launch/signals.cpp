#include "stretto/launch/signals.h"

#include <cerrno>
#include <cstring>

#include <pthread.h>
#include <sys/signalfd.h>

#include "stretto/base/error.h"

namespace stretto::launch {

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  const char* meaning = ::sigdescr_np(signal);
  if (name == nullptr || meaning == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("SIG{} ({})", name, meaning);
}

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

SignalGuard::SignalGuard() {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&watched, signal);
  }
  fd_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw IoError("cannot make a signal descriptor: {}", std::strerror(errno));
  ::pthread_sigmask(SIG_BLOCK, &watched, &old_mask_);

  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &old_pipe_);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;  // were it ignored, the kernel would reap the children itself
  ::sigaction(SIGCHLD, &standard, &old_child_);
}

SignalGuard::~SignalGuard() { restore(); }

std::optional<int> SignalGuard::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void SignalGuard::restore() const {
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigaction(SIGCHLD, &old_child_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace stretto::launch
