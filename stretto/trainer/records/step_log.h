#pragma once

#include <memory>
#include <vector>

#include "stretto/base/weighted_mean.h"
#include "stretto/config/recipe.h"
#include "stretto/tensor/state.h"
#include "stretto/track/trackers.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/api/step_report.h"
#include "stretto/trainer/records/evaluation_speed.h"
#include "stretto/trainer/records/rank_use.h"
#include "stretto/trainer/records/throughput.h"
#include "stretto/trainer/run/pending_evaluation.h"
#include "stretto/trainer/run/recurrence.h"

namespace stretto::trainer {

// metrics.jsonl and the trackers of the recipe, then those of the program; none on ranks other than 0.
track::Trackers make_trackers(const Recipe& recipe, int rank,
                              const std::vector<std::shared_ptr<Tracker>>& more);

// The records of a run, which rank 0 passes to its trackers.
class StepLog {
 public:
  // `trackers` must outlive this object.
  StepLog(const Recipe& recipe, const Mesh& mesh, track::Trackers& trackers)
      : recipe_(recipe),
        log_every_(recipe.track.log_every, mesh.world().rank() == 0),
        mesh_(mesh),
        trackers_(trackers),
        throughput_(recipe.track.throughput_steps) {}

  // Starts after `steps_done` of `total_steps`. The evaluation that is `pending` will be recorded.
  void begin(int64_t steps_done, int64_t total_steps, const std::optional<PendingEvaluation>& pending);

  // Whether this rank requests a record after the next step, because an interval of time has passed.
  bool requested() const { return log_every_.requested(); }

  // Whether a record follows this step, by track.log_every; `evaluation` as in Recurrence::due().
  bool due(const StepReport& report, std::optional<int64_t> evaluation) const {
    return log_every_.due(report, report.requests.record, evaluation);
  }

  void add(const StepReport& report);

  // Whether steps were taken since the last record.
  bool pending() const { return loss_.weight > 0; }

  // Writes the record of the steps since the last one, with the values `logged` by the module; the progress
  // line does not show those that are `hidden`. Collective.
  void write(const StepReport& report, const LoggedMeans& logged);
  // A metric of the module is not replaced by a value of `speed` with its name.
  void write_evaluation(const StepReport& at, const Metrics& metrics, const EvaluationSpeed& speed);

  // Logs texts that the model has written, and passes them to the trackers.
  void write_samples(int64_t step, const std::vector<std::string>& texts);

  // Excludes the time until the next step (evaluation, saving) from the throughput.
  void pause();

  void add_state(State& state) const;
  void resume(const State& state);

 private:
  Record record_of(const StepReport& report) const;

  const Recipe& recipe_;
  Recurrence log_every_;
  const Mesh& mesh_;
  track::Trackers& trackers_;
  Throughput throughput_;
  WeightedMean loss_;  // of the steps since the last record; NaN: all were skipped
  RankUse use_;
  LoggedMeans logged_;  // of the last record
  Metrics rank_use_;    // of the last record
};

}  // namespace stretto::trainer
