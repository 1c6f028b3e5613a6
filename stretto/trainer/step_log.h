#pragma once

#include <chrono>
#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/track/metrics_log.h"
#include "stretto/track/progress.h"
#include "stretto/trainer/module.h"
#include "stretto/trainer/training_run.h"

namespace stretto {

// What rank 0 tells of a run: the progress line, and metrics.jsonl.
class StepLog {
 public:
  StepLog(const Recipe& recipe, int rank);

  // Begins to tell after `steps_done` of `total_steps`: what metrics.jsonl says of later ones is taken out, for these steps
  // are about to be taken again.
  void begin(int64_t steps_done, int64_t total_steps);

  void add(const StepReport& report);
  void add(const StepReport& at, const Metrics& evaluated);

  // Evaluation and saving are not training time; the line is left standing.
  void pause();

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  using Clock = std::chrono::steady_clock;

  const Recipe& recipe_;
  bool tells_;
  int64_t total_steps_ = 0;
  std::optional<Progress> progress_;
  std::optional<MetricsLog> file_;
  std::optional<Clock::time_point> started_;
  int64_t samples_ = 0, tokens_ = 0;
  double loss_sum_ = 0;  // since the last record
  int64_t steps_ = 0;
};

}  // namespace stretto
