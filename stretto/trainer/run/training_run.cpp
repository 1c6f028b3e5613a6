#include "stretto/trainer/run/training_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/nn/functional.h"
#include "stretto/parallel/leaf_watch.h"
#include "stretto/parallel/phase.h"

namespace stretto::trainer {

TrainingRun::TrainingRun(Session& session)
    : session_(session),
      engine_(session.engine),
      training_(session.recipe.training),
      runner_(session.module, session.train, session.mesh,
              {.device = session.device,
               .autocast = session.compute.autocast,
               .collective_forward = engine_.facts().passes_are_collective}) {
  engine_.watch_leaves();
}

// The information for the steps of the next global batch.
PassInfo TrainingRun::pass_info() const {
  return {.forward = {.training = true,
                      .key = hash64(std::array<uint64_t, 2>{static_cast<uint64_t>(training_.seed),
                                                            static_cast<uint64_t>(session_.cursor.epoch())}),
                      .kernels = nn::parse_kernels(training_.kernels),
                      .recompute_every = training_.activation_checkpointing},
          .step = session_.steps_done(),
          .epoch = session_.cursor.epoch(),
          .validation_set = {},
          .loss_factor = session_.loss_factor()};
}

// Returns the requests of any rank of the job, given those of Axes::sum.
Requests TrainingRun::of_any_rank(Requests local) const {
  Group& world = session_.mesh.world();
  if (&world == &session_.mesh.group(Axes::sum)) return local;
  const auto flags = local.flags();
  Tensor asked = at::tensor(at::ArrayRef<double>(flags), at::kDouble).to(world.device());
  world.all_reduce(asked, ReduceOp::max).wait();
  return Requests::of(asked.cpu().const_data_ptr<double>());
}

StepReport TrainingRun::step(const Requests& requests) {
  const auto start = std::chrono::steady_clock::now();
  const double communicated = session_.mesh.seconds_inside(), data_before = runner_.data_seconds();
  StepReport report;
  report.epoch = session_.cursor.epoch();
  report.epochs_before = session_.cursor.epochs_done();
  const data::GlobalBatch batch = session_.cursor.batch();
  session_.manual ? step_manually(batch, requests, report) : step_once(batch, requests, report);
  if (training_.deterministic && engine_.buffers_changed()) {
    throw ConfigError(
        "training.deterministic: buffers of the model change in training, such as running statistics, by the samples of each rank; use layers without them, such as LayerNorm");
  }
  if (!report.rollback.empty()) return report;
  session_.cursor.advance();
  report.epoch_ends = session_.cursor.epoch_begins();
  report.step = session_.steps_done();
  report.skipped_steps = session_.loss_scale.skipped_steps();
  report.epochs = session_.cursor.epochs_done();
  report.samples = std::ssize(batch.samples);
  for (const int64_t sample : batch.samples) report.tokens += session_.train.length_of(sample);
  report.seconds = seconds_since(start);
  report.communication = session_.mesh.seconds_inside() - communicated;
  report.data_wait = runner_.data_seconds() - data_before;
  return report;
}

void TrainingRun::step_once(const data::GlobalBatch& batch, const Requests& requests, StepReport& report) {
  LoggedWindows logged;
  StepTotals local = runner_.train(batch, pass_info(), engine_, logged);
  local.requests = requests;
  StepTotals::Packed sums = local.pack();
  {
    RECORD_USER_SCOPE(phase::wait);
    engine_.finish(sums);
  }
  require_registered_leaves();
  const StepTotals totals = StepTotals::unpack(sums);
  const double loss_sum = totals.loss, count = totals.count;
  if (count <= 0) {
    throw DataError("step {}: the losses of the global batch count {} samples: there are no labels",
                    session_.steps_done() + 1, count);
  }
  const double norm = engine_.gradients().norm(), divisor = count * session_.loss_factor();
  const bool finite = std::isfinite(loss_sum) && std::isfinite(norm);
  optim::StepRates rates = session_.schedule->rates(engine_.steps_done());
  rates.lr *= session_.guard.lr_scale();
  report.requests = of_any_rank(totals.requests);
  report.loss = loss_sum / count;
  report.grad_norm = norm / divisor;
  report.lr = rates.lr;
  if (session_.loss_scale.in_use()) {
    report.loss_scale = session_.loss_scale.value();
    if (std::isfinite(loss_sum) && !finite) return skip_overflow(report);
    session_.loss_scale.count_finite();
  }
  switch (session_.guard.judge(report.loss, report.grad_norm, session_.steps_done() + 1,
                               finite ? "" : find_culprit(local, batch))) {
    case StepGuard::Verdict::take: {
      RECORD_USER_SCOPE(phase::optimizer);
      show_gradients(batch, 1 / divisor, report);
      if (engine_.facts().reevaluates) {
        engine_.step({.rates = rates, .grad_scale = 1 / divisor, .loss = report.loss, .again = [&] {
                        return evaluate_again(batch);
                      }});
      } else {
        engine_.step({.rates = rates, .grad_scale = clip_gradients(norm, divisor)});
      }
      session_.logged.add(logged, totals);
      return;
    }
    case StepGuard::Verdict::skip:
      engine_.skip_step();
      report.taken = false;
      return;
    case StepGuard::Verdict::rollback:
      engine_.gradients().clear();
      report.rollback = session_.guard.reason();
      return;
  }
}

// In fp16: the gradients overflowed at this loss scale, although the loss is finite. The step is not counted
// by the optimizer, so that its schedule does not advance.
void TrainingRun::skip_overflow(StepReport& report) {
  const std::string parameter = engine_.gradients().first_nonfinite();
  engine_.gradients().clear();
  session_.loss_scale.count_overflow();
  report.taken = false;
  log::info(
      "step {}: the gradient of {} overflowed at loss scale {:g}; the step is skipped, the next one has {:g}",
      session_.steps_done(), parameter, *report.loss_scale, session_.loss_scale.value());
}

// The factor by which the optimizer multiplies gradients that are `divisor` times those of the mean loss.
// `norm`: their norm.
double TrainingRun::clip_gradients(double norm, double divisor) {
  if (training_.max_grad_value) {
    engine_.gradients().clamp(*training_.max_grad_value * divisor);
    if (training_.max_grad_norm > 0) norm = engine_.gradients().norm();
  }
  return parallel::clip_scale(norm / divisor, training_.max_grad_norm) / divisor;
}

// Only the first evaluation logs values of the module; later evaluations are not logged.
optim::Evaluation TrainingRun::evaluate_again(const data::GlobalBatch& batch) {
  LoggedWindows ignored;
  StepTotals::Packed sums = runner_.train(batch, pass_info(), engine_, ignored).pack();
  engine_.finish(sums);
  const StepTotals totals = StepTotals::unpack(sums);
  return {totals.loss / totals.count, 1 / totals.count};
}

// Throws ConfigError if losses of the first step depended on tensors that nothing trains, such as parameters
// of a layer that was assigned to a member after another one had been registered. Before the loss is looked
// at: if nothing initialized them, it may not be finite.
void TrainingRun::require_registered_leaves() {
  if (!std::exchange(is_first_, false)) return;
  const parallel::WatchedLeaves leaves = engine_.take_leaves();
  if (leaves.outside.empty()) return;
  const auto& parameters = engine_.facts().tensors.trainable;
  const auto largest =
      std::ranges::max_element(leaves.outside, {}, [](const Tensor& tensor) { return tensor.numel(); });
  throw ConfigError(
      "training_step: the loss depends on a tensor, {}, that requires grad and is not a parameter of the model{}; register it before fit (replace_module() for a member that is assigned again), pass its module to teacher(), or set its requires_grad to false",
      describe(*largest),
      leaves.unused.empty()
          ? ""
          : fmt::format(", but not on {}, which is one", parameters[leaves.unused[0]].name));
}

void TrainingRun::show_gradients(const data::GlobalBatch& batch, double scale, const StepReport& report) {
  if (!on_gradients_) return;
  StepReport coming = report;
  coming.step = session_.steps_done() + 1;
  coming.epochs = report.epochs_before +
                  static_cast<double>(batch.samples.size()) / static_cast<double>(session_.train.size());
  gradient_scale_ = scale;
  on_gradients_(coming);
}

NamedTensors TrainingRun::gradients() { return engine_.gradients().by_name(gradient_scale_); }

}  // namespace stretto::trainer
