#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/data/epoch_cursor.h"
#include "stretto/optim_config/schedule.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/matmul_libraries.h"
#include "stretto/parallel/random_state.h"
#include "stretto/strategy/batch_plan.h"
#include "stretto/tensor/state.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/api/step_report.h"
#include "stretto/trainer/records/logged_values.h"
#include "stretto/trainer/run/compute_precision.h"
#include "stretto/trainer/run/micro_batch_runner.h"
#include "stretto/trainer/run/optimizer_set.h"
#include "stretto/trainer/run/step_guard.h"

namespace stretto {

// The state of a run and its optimizer step: drives the engine with micro-batches, a schedule and a guard. The Trainer
// decides when to step.
class TrainingRun {
 public:
  // Binds the module to an engine, which broadcasts over Axes::sum the weights of the first rank. The ranks
  // of Axes::data share the global batch; others get the same samples. `dataset` and `mesh` must outlive the
  // run. Collective.
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, const Mesh& mesh,
              at::Device device);

  int64_t steps_per_epoch() const { return cursor_.steps_per_epoch(); }
  int64_t total_steps() const { return schedule_->total_steps(); }
  // Optimizer steps; of a module that steps several optimizers itself, batches.
  int64_t steps_done() const { return manual_ ? manual_->batches_done() : engine_.steps_done(); }
  int64_t epoch() const { return cursor_.epoch(); }  // of the next step
  bool epoch_begins() const { return cursor_.epoch_begins(); }

  // Takes the next step: forward and backward of the micro-batches, reduction, clipping, update. The requests of this
  // rank (`mine`) are sent with the reduction. If the loss or gradients are not finite, or spike, there is no update:
  // depending on training.on_nonfinite and on_spike, step() throws, skips the samples, or requests a rollback. An
  // exception names the first parameter and rank whose gradient is not finite; the log of a skipped step names a rank
  // only if its loss is not finite.
  // Collective.
  StepReport step(const Requests& mine = {});

  // Calls `hook` in each step that is taken, when its gradients are reduced: with the report's step and epochs.
  void on_gradients(std::function<void(const StepReport&)> hook) { on_gradients_ = std::move(hook); }
  // In the hook: the gradients of the mean loss, before clipping, by parameter; empty where the strategy divides them. Collective.
  NamedTensors gradients();

  // Everything that the next step depends on, as a state table over live memory. `random_writers`: number of ranks
  // whose random state is in the table; to save, the world size. Collective.
  State state(int random_writers);

  // Continues from `state`, whose tensors were filled by checkpoint::load. World size and batch sizes may differ from
  // those of the saved run. Throws ConfigError if that is not possible. Collective.
  void resume(const State& state);

  // The means of the values logged by steps since the last call, on rank 0; after the last step of an epoch with those over the
  // epoch. Collective.
  LoggedMeans take_logged();
  // Whether the epoch that has just ended has values of its own to record. The same on all ranks.
  bool has_epoch_values() const { return logged_in_epoch_ && epoch_begins(); }

  // The schedule of the learning rate, which may follow metrics. Every rank passes it the same.
  optim::Schedule& schedule() { return *schedule_; }

  // For weights, replicas and lazily stepped rows.
  Engine& engine() { return engine_; }

  const ComputePrecision& compute() const { return compute_; }
  const BatchPlan& batch_plan() const { return batch_; }

  // The header of a run, one line per subject: model, types, memory, communication, batch, steps.
  std::string describe();

 private:
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, const Mesh& mesh,
              at::Device device, const BatchPlan& batch);
  TrainingRun(const Recipe& recipe, Module& module, const data::Dataset& dataset, const Mesh& mesh,
              at::Device device, const BatchPlan& batch, OptimizerPlan plan, const TensorSource* values);
  int64_t count_total_steps() const;
  void begin_deterministic();
  std::string describe_lr_scale() const;
  std::string describe_order() const;
  void collect_logged();
  void collect_epoch();
  PassInfo pass_info() const;
  StepReport step_manually(const Requests& requests, StepReport report);
  void show_gradients(const data::GlobalBatch& batch, double scale, const StepReport& report);
  void keep_logged(const LoggedWindows& mine, const StepTotals& totals);
  void finish_report(const data::GlobalBatch& batch, StepReport& report);
  Requests of_any_rank(Requests mine) const;
  std::string find_culprit(const StepTotals& mine, const data::GlobalBatch& batch);
  bool own_gradient_is_finite(const data::GlobalBatch& batch);
  double clip_gradients(double norm, double count);
  optim::Evaluation evaluate_again(const data::GlobalBatch& batch);

  const TrainingConfig training_;
  const std::string data_name_;  // of `dataset_`, for messages
  const BatchPlan batch_;
  Module& module_;
  const data::Dataset& dataset_;
  const Mesh& mesh_;
  at::Device device_;
  const ComputePrecision compute_;
  OptimizerSet* const several_;  // the engine's optimizer, where the module steps several itself; else null
  Engine engine_;
  MicroBatchRunner runner_;
  std::unique_ptr<optim::Schedule> schedule_;
  double base_lr_ = 0;   // of the optimizer
  double lr_scale_ = 1;  // by optimizer.scale_lr
  data::EpochCursor cursor_;
  std::optional<MatmulLibraries> products_;  // on CPU
  StepGuard guard_;
  RandomState random_;
  std::optional<ManualOptimization> manual_;
  std::function<void(const StepReport&)> on_gradients_;
  double gradient_scale_ = 1;      // of the sums in the hook
  LoggedWindows logged_;           // since it was last taken
  bool logged_somewhere_ = false;  // there may be something to collect from other ranks
  bool logged_in_epoch_ = false;   // values of the epoch, on any rank
};

}  // namespace stretto
