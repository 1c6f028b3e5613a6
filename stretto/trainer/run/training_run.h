#pragma once

#include <functional>
#include <string>

#include "stretto/trainer/api/step_report.h"
#include "stretto/trainer/run/micro_batch_runner.h"
#include "stretto/trainer/run/session.h"

namespace stretto::trainer {

// Takes the steps of a run: drives the engine of its session with micro-batches, a schedule and a guard. The
// Trainer decides when to step.
class TrainingRun {
 public:
  // `session` must outlive it.
  explicit TrainingRun(Session& session);

  // Takes the next step: forward and backward of the micro-batches, reduction, clipping, update. The requests
  // of this rank (`local`) are sent with the reduction. If the loss or gradients are not finite, or spike,
  // there is no update: depending on training.on_nonfinite and on_spike, step() throws, skips the samples, or
  // requests a rollback. An exception names the first parameter and rank whose gradient is not finite; the
  // log of a skipped step names a rank only if its loss is not finite.
  // Collective.
  StepReport step(const Requests& local = {});

  // Calls `hook` in each step that is taken, after its gradients are reduced, with the report's step and
  // epochs.
  void on_gradients(std::function<void(const StepReport&)> hook) { on_gradients_ = std::move(hook); }
  // The gradients of the mean loss, before clipping, by parameter, on every rank. Called in the hook.
  // Collective.
  NamedTensors gradients();

 private:
  PassInfo pass_info() const;
  // Steps the run's optimizer, or lets a module step its optimizers itself, with one batch.
  void step_once(const data::GlobalBatch& batch, const Requests& requests, StepReport& report);
  void step_manually(const data::GlobalBatch& batch, const Requests& requests, StepReport& report);
  void show_gradients(const data::GlobalBatch& batch, double scale, const StepReport& report);
  Requests of_any_rank(Requests local) const;
  std::string find_culprit(const StepTotals& local, const data::GlobalBatch& batch);
  bool own_gradient_is_finite(const data::GlobalBatch& batch);
  std::string find_ranks(const data::GlobalBatch& batch, size_t call);
  void skip_overflow(StepReport& report);
  double clip_gradients(double norm, double divisor);
  optim::Evaluation evaluate_again(const data::GlobalBatch& batch);
  void require_registered_leaves();

  Session& session_;
  parallel::Engine& engine_;
  const TrainingConfig& training_;
  MicroBatchRunner runner_;
  std::function<void(const StepReport&)> on_gradients_;
  double gradient_scale_ = 1;  // of the sums in the hook
  bool is_first_ = true;       // step
};

}  // namespace stretto::trainer
