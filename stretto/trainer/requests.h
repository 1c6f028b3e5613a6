#pragma once

namespace stretto {

// What a run was asked for, to be done after the step under way.
struct Requests {
  bool save = false;
  bool stop = false;  // from outside: save, and end
  bool end = false;   // by a callback: end as after the last step
};

// While it lives, SIGUSR1 asks this process to save, SIGINT and SIGTERM to stop; a second SIGINT or SIGTERM ends the
// process as it would have before. Several may live at a time (ranks as threads); the last one restores what was there.
class RequestSignals {
 public:
  RequestSignals();
  RequestSignals(const RequestSignals&) = delete;
  RequestSignals& operator=(const RequestSignals&) = delete;
  ~RequestSignals();

  // What has been asked for since the last call; a stop stays asked for.
  Requests take() const;
};

}  // namespace stretto
