#pragma once

#include <array>
#include <optional>
#include <string>

#include <signal.h>

#include "stretto/base/fd.h"

namespace stretto::launch {

// "SIGSEGV (Segmentation fault)".
std::string signal_text(int signal);

// Whether the signal asks a program to end: SIGINT, SIGTERM, SIGHUP or SIGQUIT.
bool asks_to_end(int signal);

// While it exists, the signals that a launcher acts on (SIGCHLD, and SIGUSR1, SIGTSTP and those that ask it
// to end unless they were ignored, as by nohup) are read from a descriptor, and SIGPIPE and SIGXFSZ are
// ignored. Signals that are unread when it is destroyed came after the job's end and are dropped, unless an
// exception destroys it. REQUIRES: constructed before any other thread of the process, so that all threads
// inherit the mask.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  int fd() const { return fd_.get(); }  // readable when next() returns a signal
  std::optional<int> next() const;      // a signal that has arrived, if any; never blocks
  bool end_pending() const;             // whether next() will return one that asks to end

  // Acts like SIGTSTP on a process without a guard: stops it until SIGCONT, unless no process of its session
  // could continue it (setpgid(2) on orphaned process groups).
  void stop_this_process() const;

  // Restores the earlier dispositions and mask in a child between fork and exec; SIGUSR1 is blocked if
  // `hold_save` (see base/process.h), else unblocked. Async-signal-safe.
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
