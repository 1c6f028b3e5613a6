#pragma once

#include <memory>
#include <string>

#include "stretto/comm/group.h"
#include "stretto/config/batch_plan.h"
#include "stretto/config/recipe.h"
#include "stretto/data/epoch_cursor.h"
#include "stretto/hparams/schedule.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/random_state.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/module.h"
#include "stretto/trainer/requests.h"
#include "stretto/trainer/step_guard.h"

namespace stretto {

// One optimizer step as all ranks see it.
struct StepReport {
  int64_t step = 0;      // 1 after the first
  int64_t epoch = 0;     // of the step; 0 is the first
  double epochs = 0;     // completed after it
  double loss = 0;       // mean over the global batch
  double grad_norm = 0;  // of the mean gradient, before clipping
  double lr = 0;
  int64_t samples = 0;  // of the global batch
  int64_t tokens = 0;
  double seconds = 0;        // that it took
  double communication = 0;  // of these, spent in communication and nothing else by this rank
  bool epoch_ends = false;
  Requests requests;     // of any rank, before this step's reduction
  bool taken = true;     // false: it was skipped, and its loss is not to be believed
  std::string rollback;  // why the step was not taken and the run must go back; else empty
};

// The state of a run and how it takes one step; the Trainer decides when. Drives the engine with micro-batches, a schedule
// and a guard.
class TrainingRun {
 public:
  // Binds the module to an engine, which gives every rank rank 0's weights. Collective. `dataset` and `group` must outlive
  // the run.
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
              at::Device device);

  int64_t steps_per_epoch() const { return cursor_.steps_per_epoch(); }
  int64_t total_steps() const { return schedule_->total_steps(); }
  int64_t steps_done() const { return engine_.steps_done(); }
  int64_t epoch() const { return cursor_.epoch(); }  // of the next step
  bool epoch_begins() const { return cursor_.epoch_begins(); }

  // Takes the next step: micro-batches forward and backward, reduction, clipping, update. What this rank was asked for
  // (`mine`) travels with the reduction. A step whose loss or gradients are not finite, or spike, is not taken: as
  // training.on_nonfinite and on_spike say, step() throws, skips its samples, or asks to go back.
  StepReport step(const Requests& mine = {});

  // Everything that the next step depends on, as a table over living memory. Collective.
  // `random_writers`: ranks whose random state the table has; world size to save.
  State state(int random_writers);

  // Continues where `state` was described: its tensors have been written by checkpoint::load. World size and batch sizes
  // may be others than they were. Throws ConfigError where that cannot be honoured. Collective.
  void resume(const State& state);

  // The means of what the steps' contexts logged since the last call, at rank 0. Collective.
  Metrics take_logged();

  // Weights, replicas and lazily stepped rows: engine.h.
  Engine& engine() { return engine_; }

  // The header of a run, a line per subject: model, types, memory, communication, batch, steps.
  std::string describe() const;

 private:
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
              at::Device device, OptimizerPlan plan);
  int64_t count_total_steps() const;
  void collect_logged();
  Loss accumulate(const data::GlobalBatch& batch, LoggedValues& logged);
  std::string find_culprit(const Loss& mine) const;

  const TrainingConfig training_;
  BatchPlan plan_;
  Module& module_;
  const data::Dataset& dataset_;
  Group& group_;
  at::Device device_;
  Engine engine_;
  std::unique_ptr<optim::Schedule> schedule_;
  data::EpochCursor cursor_;
  StepGuard guard_;
  RandomState random_;
  LoggedValues logged_;            // since it was last taken
  bool logged_somewhere_ = false;  // there may be something to collect from other ranks
};

}  // namespace stretto
