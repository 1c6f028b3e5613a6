#pragma once

#include <array>
#include <csignal>

namespace stretto {

// Requests to a run, carried out after the current step.
struct Requests {
  bool save = false;
  bool stop = false;      // by a signal: save and exit
  bool end = false;       // by a callback: finish as if this were the last step
  bool evaluate = false;  // by rank 0's clock
  bool record = false;    // by rank 0's clock: write a log line

  // For reductions: 1 for each request, in the order above. After a sum or maximum over ranks, of(): those of any rank.
  std::array<double, 5> flags() const {
    return {save ? 1.0 : 0, stop ? 1.0 : 0, end ? 1.0 : 0, evaluate ? 1.0 : 0, record ? 1.0 : 0};
  }
  static Requests of(const double* flags) {
    return {flags[0] > 0, flags[1] > 0, flags[2] > 0, flags[3] > 0, flags[4] > 0};
  }

  Requests operator|(const Requests& other) const {
    return {save || other.save, stop || other.stop, end || other.end, evaluate || other.evaluate,
            record || other.record};
  }
};

// While an object lives, SIGUSR1 requests a save; SIGINT, SIGTERM and SIGHUP request a stop (SIGHUP unless it is
// ignored, as under nohup); a second one of these, more than a second later, has its default action: Slurm signals a launcher and its
// ranks, and then the launcher signals the ranks too. A pending SIGUSR1 that was blocked before
// (base/process.h) is delivered. Several objects may exist at a time (ranks as threads); the last one restores the
// handlers. REQUIRES: destroyed on the thread that constructed it.
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

}  // namespace stretto
