#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace stretto {

// Requests to a run, which are handled after the current step.
struct Requests {
  bool save = false;
  bool stop = false;      // by a signal: save and exit
  bool end = false;       // by a callback: finish as if this were the last step
  bool evaluate = false;  // by rank 0's clock
  bool record = false;    // by rank 0's clock: write a log line
  bool collect = false;   // by rank 0: metrics of evaluate.async have arrived

  static constexpr size_t count = 6;  // kinds of requests

  // 1 for each request, in the order above, to be reduced over ranks. After a sum or maximum, of() returns
  // the requests of any rank.
  std::array<double, count> flags() const {
    return {save ? 1.0 : 0,     stop ? 1.0 : 0,   end ? 1.0 : 0,
            evaluate ? 1.0 : 0, record ? 1.0 : 0, collect ? 1.0 : 0};
  }
  static Requests of(const double* flags) {
    return {flags[0] > 0, flags[1] > 0, flags[2] > 0, flags[3] > 0, flags[4] > 0, flags[5] > 0};
  }

  Requests operator|(const Requests& other) const {
    return {save || other.save,         stop || other.stop,     end || other.end,
            evaluate || other.evaluate, record || other.record, collect || other.collect};
  }
};

// The result of one optimizer step; the same on all ranks except where noted.
struct StepReport {
  int64_t step = 0;          // 1 after the first
  int64_t epoch = 0;         // epoch of the step; 0 is the first
  double epochs = 0;         // completed after the step, with fraction
  double epochs_before = 0;  // the same before the step
  double loss = 0;           // mean over the global batch
  double grad_norm = 0;      // of the mean gradient, before clipping
  double lr = 0;
  int64_t samples = 0;  // of the global batch
  int64_t tokens = 0;
  double seconds = 0;        // duration on this rank
  double communication = 0;  // seconds of these in which this rank only communicated
  double data_wait = 0;      // seconds of these that this rank spent on making its batches
  bool epoch_ends = false;
  Requests requests;  // by any rank, before this step's reduction; also set for a rollback
  bool taken = true;  // false: it was skipped, and its loss or gradient norm may not be finite
  std::optional<double> loss_scale = std::nullopt;  // in fp16: of this step
  int64_t skipped_steps = 0;                        // so far, because gradients overflowed in fp16
  std::string rollback;                             // the reason if the run must roll back; else empty
};

}  // namespace stretto
