#pragma once

#include <array>
#include <optional>
#include <string>

#include <signal.h>

#include "stretto/base/fd.h"

namespace stretto::launch {

// "SIGSEGV (Segmentation fault)".
std::string signal_text(int signal);

// Whether it is one by which a user or the system ends a program: SIGINT, SIGTERM, SIGHUP or SIGQUIT.
bool asks_to_end(int signal);

// While it lives, the signals a launcher has to act on (SIGCHLD, and SIGUSR1 and those that ask it to end
// unless they were ignored, as nohup does) arrive as data of a descriptor instead of interrupting, and
// writing to a closed pipe, or beyond the limit on a file's size, is an error instead of the end. REQUIRES: made before any other thread of the
// process, so that all of them inherit it.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  int fd() const { return fd_.get(); }  // readable when next() has something
  std::optional<int> next() const;      // a signal that has arrived; never blocks
  bool end_pending() const;             // whether one that asks to end has arrived, which next() will give

  // What was before, for a child between fork and exec. SIGUSR1 waits in the child until it handles that, if `hold_save`
  // (see base/process.h), else it is not blocked. Async-signal-safe.
  void restore_for_child(bool hold_save) const;

 private:
  void restore(const sigset_t& mask) const;

  sigset_t watched_{};
  sigset_t old_mask_{}, child_mask_{}, holding_mask_{};
  struct sigaction old_pipe_ {};
  struct sigaction old_size_ {};
  struct sigaction old_child_ {};
  Fd fd_;
};

}  // namespace stretto::launch
