#include "stretto/trainer/api/manual_optimization.h"

#include <array>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/tensor/autocast.h"

namespace stretto {
namespace {

void refuse(const Recipe& recipe, const std::string& setting, const std::string& value,
            const std::string& why, const std::string& advice) {
  throw ConfigError("{}: {} cannot be combined with manual optimization: {}; {}",
                    recipe.origins.label(setting), value, why, advice);
}

// Refuses settings that do not apply, before the first step.
void check_settings(const Recipe& recipe, const parallel::Engine& engine) {
  const TrainingConfig& training = recipe.training;
  if (engine.facts().gradients_are_sharded || engine.facts().passes_are_collective) {
    refuse(recipe, "training.strategy", training.strategy,
           "gradients of several backward calls are kept whole on each rank", "use ddp or zero1");
  }
  if (training.deterministic) {
    refuse(recipe, "training.deterministic", "true", "it sums over several micro-batches per step",
           "remove it");
  }
  if (recipe.ema.decay)
    refuse(recipe, "ema.decay", "the average", "it follows the steps of one optimizer", "remove it");
  if (training.on_nonfinite != OnNonfinite::stop)
    refuse(recipe, "training.on_nonfinite", training.on_nonfinite, "other optimizers have stepped already",
           "use stop");
  if (training.on_spike != OnSpike::off)
    refuse(recipe, "training.on_spike", training.on_spike, "other optimizers have stepped already",
           "use off");
}

}  // namespace

void require_loss(const Loss& loss) {
  if (!loss.sum.defined() || loss.sum.numel() != 1) {
    throw ShapeError(
        "training_step returned {} as the loss; expected the sum over the batch, a single element",
        loss.sum.defined() ? describe(loss.sum) : "no tensor");
  }
  if (!loss.sum.requires_grad()) {
    throw Error(
        "training_step returned a loss that does not require grad: it was detached, read by item(), computed under NoGradGuard, or depends on no trainable parameter");
  }
  if (!std::isfinite(loss.count) || loss.count < 0) {
    throw Error(
        "training_step returned {} as the loss's count; expected the number of samples or tokens in the sum",
        loss.count);
  }
}

ManualOptimization::ManualOptimization(const Recipe& recipe, parallel::Engine& engine,
                                       trainer::OptimizerSet& optimizers, int64_t grad_accumulation_steps,
                                       int64_t total_steps)
    : training_(recipe.training), engine_(engine), optimizers_(optimizers) {
  check_settings(recipe, engine);
  if (grad_accumulation_steps > 1) {
    refuse(recipe, "training.grad_accumulation_steps", std::to_string(grad_accumulation_steps),
           "training_step steps after each batch", "lower the global batch or raise training.batch_size");
  }
  for (size_t i = 0; i < optimizers_.size(); ++i)
    optimizers_.schedule(i).start(optimizers_.part(i).optimizer->base_rates(), total_steps);
}

void ManualOptimization::backward(const Loss& loss) {
  require_loss(loss);
  engine_.backward(idle_ ? loss.sum * 0 : loss.sum, parallel::Reduce::later);
  ++backwards_;
  if (idle_) return;
  loss_ += loss.sum.item<double>();
  count_ += loss.count;
}

double ManualOptimization::step(const std::string& optimizer) {
  const size_t index = optimizers_.index(optimizer);
  if (backwards_ == 0)
    throw Error("step(\"{}\"): there are no gradients; call backward(loss) since the last step", optimizer);
  engine_.backward({}, parallel::Reduce::last);  // reduces what was accumulated
  std::array<double, 2> totals = {loss_, count_};
  engine_.finish(totals);
  const auto [loss_sum, count] = totals;
  loss_ = count_ = 0;
  backwards_ = 0;
  if (count <= 0)
    throw DataError("step(\"{}\"): the losses of the global batch count {} samples", optimizer, count);
  optimizers_.select(index);
  parallel::GradientView gradients = engine_.gradients();
  const auto& parameters = engine_.facts().tensors.trainable;
  gradients.clear([&](size_t parameter) { return !optimizers_.selected_has(parameters[parameter].name); });
  double norm = gradients.norm();
  if (!std::isfinite(loss_sum) || !std::isfinite(norm)) {
    const std::string parameter = gradients.first_nonfinite();
    throw Error(
        "step {} of optimizer \"{}\": the {} is not finite{}; lower its learning rate, or inspect the batch",
        steps_done(optimizer) + 1, optimizer, std::isfinite(loss_sum) ? "gradient" : "loss",
        parameter.empty() ? "" : ", first in the gradient of " + parameter);
  }
  const double before = norm / count;
  if (training_.max_grad_value) {
    gradients.clamp(*training_.max_grad_value * count);
    norm = gradients.norm();
  }
  const optim::StepRates rates = optimizers_.schedule(index).rates(steps_done(optimizer));
  engine_.step(
      {.rates = rates, .grad_scale = parallel::clip_scale(norm / count, training_.max_grad_norm) / count});
  forget_casts();
  if (steps_++ == 0) norm_ = before;
  return before;
}

double ManualOptimization::lr(const std::string& optimizer) const {
  const NamedOptimizer& part = optimizers_.part(optimizers_.index(optimizer));
  return part.schedule->rates(part.optimizer->steps_done()).lr;
}

int64_t ManualOptimization::steps_done(const std::string& optimizer) const {
  return optimizers_.part(optimizers_.index(optimizer)).optimizer->steps_done();
}

void ManualOptimization::begin_batch(bool idle) {
  idle_ = idle;
  steps_ = 0;
}

void ManualOptimization::end_batch() {
  if (backwards_ > 0)
    throw Error("training_step called backward after its last step; step an optimizer with these gradients");
  if (steps_ == 0)
    throw Error("training_step stepped no optimizer; call context.manual().step(\"{}\")",
                optimizers_.part(0).name);
  ++batches_done_;
}

void ManualOptimization::add_state(State& state) const {
  state.scalars["manual"] = {{"batches", batches_done_}};
}

void ManualOptimization::resume(const State& state) {
  state.scalar("manual").at("batches").get_to(batches_done_);
}

void ManualOptimization::set_total_steps(int64_t total_steps) {
  for (size_t i = 0; i < optimizers_.size(); ++i) optimizers_.schedule(i).set_total_steps(total_steps);
}

std::string ManualOptimization::describe() const {
  std::string lines;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    const NamedOptimizer& part = optimizers_.part(i);
    lines += fmt::format("{}{}: {} of {}, lr {:g}, {}", i == 0 ? "optimizers " : "\n           ", part.name,
                         part.optimizer->name(), part.pattern, part.optimizer->base_rates().lr,
                         part.schedule->name());
  }
  return lines;
}

}  // namespace stretto
