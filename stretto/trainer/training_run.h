#pragma once

#include <memory>
#include <string>

#include "stretto/comm/group.h"
#include "stretto/config/batch_plan.h"
#include "stretto/config/recipe.h"
#include "stretto/data/epoch_cursor.h"
#include "stretto/optim/optimizer.h"
#include "stretto/optim/schedule.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/data_parallel.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/module.h"
#include "stretto/trainer/requests.h"
#include "stretto/trainer/step_guard.h"

namespace stretto {

// One optimizer step as all ranks see it.
struct StepReport {
  int64_t step = 0;   // 1 after the first
  int64_t epoch = 0;  // the step's; 0 is the first
  double epochs = 0;  // done after it
  double loss = 0;    // mean over the global batch
  double grad_norm = 0;
  double lr = 0;
  int64_t samples = 0;  // of the global batch
  int64_t tokens = 0;
  double seconds = 0;        // that it took
  double communication = 0;  // of these, spent in communication and nothing else by this rank
  bool epoch_ends = false;
  Requests requests;     // of any rank, before this step's reduction
  bool taken = true;     // false: its samples were left out, and its loss is not to be believed
  std::string rollback;  // why the step was not taken and the run must go back; else empty
};

// The state of a run and how it takes one step; the Trainer decides when.
class TrainingRun {
 public:
  // Binds the module's parameters to the arena and gives every rank rank 0's weights. Collective. `dataset` and `group`
  // must outlive the run.
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
              at::Device device);
  ~TrainingRun() { catch_up(); }

  int64_t steps_per_epoch() const { return cursor_.steps_per_epoch(); }
  int64_t total_steps() const { return schedule_->total_steps(); }
  int64_t steps_done() const { return optimizer_->steps_done(); }
  int64_t epoch() const { return cursor_.epoch(); }  // of the next step
  bool epoch_begins() const { return cursor_.epoch_begins(); }

  // Takes the next step: micro-batches forward and backward, reduction, clipping, update. What this rank was asked for
  // (`mine`) travels with the reduction. A step whose loss or gradients are not finite, or spike, is not taken: as
  // training.on_nonfinite and on_spike say, step() throws, leaves its samples out, or asks to go back.
  StepReport step(const Requests& mine = {});

  // Everything that the next step depends on, as a table over the living memory. Collective.
  State state();

  // Goes on where `state` was described: its tensors have been written by checkpoint::load. Ranks and batch sizes may be
  // others than they were. Throws ConfigError where that cannot be honoured.
  void resume(const State& state);

  // The means of what the steps' contexts were told since this was last asked, at rank 0. Collective.
  Metrics take_logged();

  // Brings the module's sparse tables up to date: before anybody but their layers reads them. The functions below do it
  // themselves.
  void catch_up() { optimizer_->catch_up(); }

  // Throws DistributedError where a rank's weights differ.
  void compare_replicas();

  // Parameters and buffers at master precision, by name.
  NamedTensors weights();

  // Types and memory, a line each, for the start of a run.
  std::string describe() const;

 private:
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
              at::Device device, OptimizerPlan plan);
  int64_t count_total_steps() const;
  void collect_logged();
  Loss accumulate(const data::GlobalBatch& batch, LoggedValues& logged);
  double clip_scale(double count, double norm) const;
  std::string find_culprit(const Loss& mine) const;

  const TrainingConfig training_;
  BatchPlan plan_;
  Module& module_;
  const data::Dataset& dataset_;
  Group& group_;
  at::Device device_;
  ModuleTensors tensors_;
  Arena arena_;
  DataParallel engine_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  data::EpochCursor cursor_;
  std::unique_ptr<optim::Schedule> schedule_;
  StepGuard guard_;
  LoggedValues logged_;            // since it was last taken
  bool logged_somewhere_ = false;  // there may be something to collect from other ranks
};

}  // namespace stretto
