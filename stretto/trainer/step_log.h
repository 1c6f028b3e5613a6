#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/track/tracker.h"
#include "stretto/trainer/module.h"
#include "stretto/trainer/recurrence.h"
#include "stretto/trainer/training_run.h"

namespace stretto {

// The records of a run, which rank 0 passes to the trackers of the recipe and of the program. A tracker that cannot
// write its files causes one warning; training continues.
class StepLog {
 public:
  StepLog(const Recipe& recipe, int rank, std::vector<std::shared_ptr<Tracker>> more_trackers);

  // Starts after `steps_done` of `total_steps`.
  void begin(int64_t steps_done, int64_t total_steps);

  // Whether this rank requests a record after the next step: with an interval of time.
  bool requested() const { return log_every_.requested(); }

  // Whether a record follows this step, by track.log_every; `evaluation` as in Recurrence::due().
  bool due(const StepReport& report, std::optional<int64_t> evaluation) const {
    return log_every_.due(report, report.requests.record, evaluation);
  }

  void add(const StepReport& report);

  // Whether steps were taken since the last record.
  bool pending() const { return steps_ > 0; }

  // Writes the record of the steps since the last one, with the values `logged` by the module.
  void write(const StepReport& report, const Metrics& logged);
  void write_evaluation(const StepReport& at, const Metrics& metrics);

  // Excludes the time until the next step (evaluation, saving) from the throughput.
  void pause();

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  using Clock = std::chrono::steady_clock;
  Record record_of(const StepReport& report) const;

  template <class Call>
  void each_tracker(const Call& call);

  const Recipe& recipe_;
  Recurrence log_every_;
  std::vector<std::shared_ptr<Tracker>> trackers_;  // at rank 0 only
  std::set<const Tracker*> failed_;                 // a warning was logged
  std::optional<Clock::time_point> started_;
  int64_t samples_ = 0, tokens_ = 0;
  double loss_sum_ = 0;  // since the last record
  double seconds_ = 0, communication_ = 0;
  int64_t steps_ = 0;
  Metrics logged_;  // of the last record
};

}  // namespace stretto
