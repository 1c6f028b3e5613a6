#pragma once

#include <chrono>
#include <optional>

#include "stretto/config/interval.h"
#include "stretto/trainer/api/step_report.h"

namespace stretto::trainer {

// Decides after which steps an event with an Interval happens. Steps, epochs and evaluations follow from the
// report and are the same on all ranks; time is measured by rank 0, whose request the other ranks receive
// with the reduction of a step.
class Recurrence {
 public:
  Recurrence(Interval every, bool main_rank);

  const Interval& every() const { return every_; }

  // Whether this rank requests the event with the next step, because the interval of time has passed.
  bool requested() const;

  // Whether the event happens after this step. `requested`: by rank 0, before the step. `evaluation`: the
  // number of the evaluation that follows the step, 1 for the first of the run; nullopt if none does.
  bool due(const StepReport& report, bool requested, std::optional<int64_t> evaluation = {}) const;

  // Call it after the event: the interval of time starts again.
  void restart() { since_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  Interval every_;
  bool main_rank_;
  Clock::time_point since_ = Clock::now();
};

}  // namespace stretto::trainer
