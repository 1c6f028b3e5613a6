#include "stretto/launch/process/signals.h"

#include <cerrno>
#include <cstring>
#include <exception>

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
  ::sigemptyset(&watched_);
  ::sigaddset(&watched_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGTSTP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&watched_, signal);
  }
  fd_ = Fd(::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw IoError("cannot create a signal descriptor: {}", std::strerror(errno));
  ::pthread_sigmask(SIG_BLOCK, &watched_, &old_mask_);
  child_mask_ = holding_mask_ = old_mask_;
  ::sigdelset(&child_mask_, SIGUSR1);
  ::sigaddset(&holding_mask_, SIGUSR1);

  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &old_pipe_);
  ::sigaction(SIGXFSZ, &ignore, &old_size_);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;  // if it were ignored, the kernel would reap the children itself
  ::sigaction(SIGCHLD, &standard, &old_child_);
}

SignalGuard::~SignalGuard() {
  while (std::uncaught_exceptions() == 0 && next()) {
  }
  restore(old_mask_);
}

std::optional<int> SignalGuard::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool SignalGuard::end_pending() const {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return false;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (::sigismember(&pending, signal) == 1 && ::sigismember(&watched_, signal) == 1) return true;
  }
  return false;
}

void SignalGuard::stop_this_process() const {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);  // blocked, so delivered by the next call
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

void SignalGuard::restore_for_child(bool hold_save) const {
  restore(hold_save ? holding_mask_ : child_mask_);
}

void SignalGuard::restore(const sigset_t& mask) const {
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigaction(SIGXFSZ, &old_size_, nullptr);
  ::sigaction(SIGCHLD, &old_child_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace stretto::launch
