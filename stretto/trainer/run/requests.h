#pragma once

#include <csignal>

#include "stretto/trainer/api/step_report.h"

namespace stretto::trainer {

// During the lifetime of an object, SIGUSR1 requests a save; SIGINT, SIGTERM and SIGHUP request a stop
// (SIGHUP unless it is ignored, as under nohup). A second stop signal more than a second later has its
// default action; earlier ones are ignored, because Slurm signals a launcher and its ranks, and then the
// launcher signals the ranks, too. A pending SIGUSR1 that was blocked before (base/process.h) is delivered.
// Several objects may exist at a time (ranks as threads); the last one restores the handlers. REQUIRES:
// destroyed on the thread that constructed it.
class RequestSignals {
 public:
  RequestSignals();
  RequestSignals(const RequestSignals&) = delete;
  RequestSignals& operator=(const RequestSignals&) = delete;
  ~RequestSignals();

  // The requests since the last call. Once requested, stop is set in every result.
  Requests take() const;

 private:
  sigset_t mask_before_{};
};

}  // namespace stretto::trainer
