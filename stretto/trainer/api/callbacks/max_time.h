#pragma once

#include <chrono>

#include "stretto/trainer/api/callback.h"

namespace stretto::trainer {

// Ends a run after a time, which is summed over the parts of a resumed run: training.max_time. Rank 0's clock
// decides.
class MaxTime : public Callback {
 public:
  // `limit` as in the recipe: "90m". Throws ConfigError for text in another form.
  explicit MaxTime(const std::string& limit);

  std::string name() const override { return "max_time"; }
  bool reads_parameters() const override { return false; }
  void fit_start(FitContext& fit) override;
  void step_start(FitContext& fit) override;
  void add_state(State& state) const override;
  void resume(const State& state) override;

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const;

  std::string limit_;
  double limit_seconds_;
  double seconds_before_ = 0;  // of earlier parts
  Clock::time_point start_ = Clock::now();
};

}  // namespace stretto::trainer
