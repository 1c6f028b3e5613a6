#pragma once

#include <csignal>

namespace stretto {

// What a run was asked for, to be done after the step under way.
struct Requests {
  bool save = false;
  bool stop = false;  // by a signal: save, and end
  bool end = false;   // by a callback: end as after the last step
};

// While it lives, SIGUSR1 asks this process to save; SIGINT, SIGTERM and SIGHUP ask it to stop (SIGHUP unless it was ignored,
// as nohup does); a second one of those has the effect it had before. A SIGUSR1 that was held until now (base/process.h)
// counts. Several may live at a time (ranks as threads); the last one restores the handlers. Destroyed on the thread that
// made it.
class RequestSignals {
 public:
  RequestSignals();
  RequestSignals(const RequestSignals&) = delete;
  RequestSignals& operator=(const RequestSignals&) = delete;
  ~RequestSignals();

  // What has been asked for since the last call; a stop stays asked for.
  Requests take() const;

 private:
  sigset_t mask_before_{};
};

}  // namespace stretto
