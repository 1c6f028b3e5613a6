#pragma once

#include <csignal>

namespace stretto {

// What a run was asked to do after the current step.
struct Requests {
  bool save = false;
  bool stop = false;  // by a signal: save, and end
  bool end = false;   // by a callback: end as if this were the last step
};

// While it lives, SIGUSR1 asks this process to save; SIGINT, SIGTERM and SIGHUP ask it to stop (SIGHUP unless it is
// ignored, as by nohup); a second one of these has its default effect. A SIGUSR1 that was blocked until now
// (base/process.h) counts. Several objects may exist at a time (ranks as threads); the last one restores the handlers.
// REQUIRES: destroyed on the thread that constructed it.
class RequestSignals {
 public:
  RequestSignals();
  RequestSignals(const RequestSignals&) = delete;
  RequestSignals& operator=(const RequestSignals&) = delete;
  ~RequestSignals();

  // The requests since the last call; a stop is returned by every call after it.
  Requests take() const;

 private:
  sigset_t mask_before_{};
};

}  // namespace stretto
