#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "stretto/trainer/api/callback.h"
#include "stretto/trainer/profile/profile.h"

namespace stretto::trainer {

struct StepProfilerOptions {
  int64_t warmup_steps = 5;  // not recorded
  int64_t steps = 10;
  std::filesystem::path trace;  // file to write: a Chrome trace, for chrome://tracing or ui.perfetto.dev
};

// Records steps of a run with libtorch's profiler, on the thread that trains. Recording has a cost: some
// microseconds per operator.
class StepProfiler : public Callback {
 public:
  explicit StepProfiler(StepProfilerOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "step_profiler"; }
  void step_start(FitContext& context) override;
  void step_end(FitContext& context, const StepReport& report) override;

  // Empty if the run ended before all steps were recorded.
  const std::optional<Profile>& profile() const { return profile_; }

 private:
  StepProfilerOptions options_;
  int64_t seen_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::optional<Profile> profile_;
};

}  // namespace stretto::trainer
