#include "stretto/trainer/api/manual_optimization.h"

#include <cmath>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/rank_list.h"
#include "stretto/base/strings.h"
#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/fixed_order.h"
#include "stretto/parallel/loss_scale.h"
#include "stretto/tensor/autocast.h"
#include "stretto/trainer/run/nonfinite_gradient.h"
#include "stretto/trainer/run/optimizer_set.h"
#include "stretto/trainer/run/rank_calls.h"
#include "stretto/trainer/run/turns.h"

namespace stretto {
namespace {

void refuse(const Recipe& recipe, const std::string& setting, const std::string& value,
            const std::string& why, const std::string& advice) {
  throw ConfigError("{}: {} cannot be combined with manual optimization: {}; {}",
                    recipe.origins.label(setting), value, why, advice);
}

// Refuses settings that do not apply, before the first step.
void check_settings(const Recipe& recipe) {
  const TrainingConfig& training = recipe.training;
  if (training.on_nonfinite != OnNonfinite::stop)
    refuse(recipe, "training.on_nonfinite", training.on_nonfinite, "other optimizers have stepped already",
           "use stop");
  if (training.on_spike != OnSpike::off)
    refuse(recipe, "training.on_spike", training.on_spike, "other optimizers have stepped already",
           "use off");
}

// Throws ConfigError for an error of autograd that is the caller's.
void refuse_used_graph(const std::string& message, const std::string& call) {
  if (message.find("through the graph a second time") != std::string::npos) {
    throw ConfigError(
        "{}: an earlier backward used a part of this loss's graph and freed it; repeat the forward pass, detach() what both losses share, or call backward once with their sum",
        call);
  }
  if (message.find("modified by an inplace operation") != std::string::npos) {
    throw ConfigError(
        "{}: a tensor with which this loss was computed has changed since, as parameters do in a step; compute the loss after the step, or detach() that part",
        call);
  }
}

}  // namespace

void require_loss(const Loss& loss, const std::string& subject) {
  if (!loss.sum.defined() || loss.sum.numel() != 1) {
    throw ConfigError("{} {} as the loss; expected the sum over the batch, a single element", subject,
                      loss.sum.defined() ? describe(loss.sum) : "no tensor");
  }
  if (!loss.sum.requires_grad()) {
    throw ConfigError(
        "{} a loss that does not require grad: it was detached, read by item(), computed under NoGradGuard, or depends on no trainable parameter",
        subject);
  }
  if (!std::isfinite(loss.count) || loss.count < 0) {
    throw ConfigError("{} {} as the loss's count; expected the number of samples or tokens in the sum",
                      subject, loss.count);
  }
}

ManualOptimization::ManualOptimization(const Recipe& recipe, parallel::Engine& engine,
                                       trainer::OptimizerSet& optimizers, int64_t total_steps,
                                       const Group& world)
    : training_(recipe.training),
      engine_(engine),
      optimizers_(optimizers),
      rank_(world.rank()),
      world_size_(world.size()),
      kept_(optimizers.size()) {
  check_settings(recipe);
  std::vector<std::string> names;
  for (const parallel::NamedParameter& parameter : engine.facts().tensors.trainable)
    names.push_back(parameter.name);
  optimizers.require_parameters(names);
  for (size_t i = 0; i < optimizers_.size(); ++i)
    optimizers_.schedule(i).start(optimizers_.part(i).optimizer->base_rates(), total_steps);
}

// In a fixed order of sums a micro-batch is one term, whatever the number of its backwards.
void ManualOptimization::backward(const Loss& loss) { add_gradients(loss, place_of("backward()")); }

void ManualOptimization::add_gradients(const Loss& loss, const std::string& call) {
  run_backward(loss, training_.deterministic ? parallel::Reduce::never : parallel::Reduce::later, call);
}

// The beginning of messages about a call.
std::string ManualOptimization::place_of(const std::string& call) const {
  return fmt::format("step {}: {}", batches_done_ + 1, call);
}

std::string ManualOptimization::place_of_step(size_t optimizer) const {
  return place_of(fmt::format("step(\"{}\")", optimizers_.part(optimizer).name));
}

void ManualOptimization::run_backward(const Loss& loss, parallel::Reduce reduce, const std::string& call) {
  require_running(call);
  require_own_tensors(call);
  require_loss(loss, call + " got");
  try {
    engine_.backward(parallel::scaled_loss(loss.sum, pass_.idle ? 0 : pass_.loss_factor),
                     search_ ? parallel::Reduce::never : reduce);
  } catch (const c10::Error& error) {
    refuse_used_graph(error.what_without_backtrace(), call);
    throw;
  }
  ++backwards_;
  ++totals_.backwards;
  if (pass_.idle) return;
  totals_.loss += loss.sum.item<double>();
  totals_.counts[static_cast<size_t>(pass_.part)] += loss.count;
}

void ManualOptimization::require_running(const std::string& call) const {
  if (pass_.running) return;
  throw ConfigError("{}: training_step has ended; call backward() and step() in training_step only", call);
}

void ManualOptimization::require_own_tensors(const std::string& call) const {
  try {
    engine_.verify();
  } catch (const Error& error) {
    throw Error("{}: {}", call, error.what());
  }
}

double ManualOptimization::step(const std::string& optimizer) {
  const size_t index = optimizers_.index(optimizer, "step");
  require_running(place_of_step(index));
  require_own_tensors(place_of_step(index));
  if (backwards_ == 0) {
    throw ConfigError(
        "{}: there are no gradients: backward was not called after the last step, which zeroed those of all optimizers; call backward(loss) first, or step(\"{}\", loss)",
        place_of_step(index), optimizer);
  }
  return run_step(index, nullptr);
}

double ManualOptimization::step(const std::string& optimizer, const Loss& last) {
  return run_step(optimizers_.index(optimizer, "step"), &last);
}

double ManualOptimization::run_step(size_t optimizer, const Loss* loss) {
  if (search_) return repeat_step(optimizer, loss);
  const std::string call = place_of_step(optimizer);
  const bool in_turns = pass_.turns != nullptr;
  require_same_call(optimizer);
  if (pass_.last) {
    restore(optimizer);
    try {
      loss != nullptr ? run_backward(*loss, parallel::Reduce::last, call)
                      : engine_.backward({}, parallel::Reduce::last);  // reduces what was accumulated
      last_norm_ = finish_step(optimizer);
    } catch (const DistributedError& error) {
      throw DistributedError("{}: {}", call, error.what());
    }
  } else {
    if (loss != nullptr) add_gradients(*loss, call);
    if (!in_turns) {
      keep(optimizer);
      return 0;
    }
    engine_.backward({}, parallel::Reduce::later);  // ends the term of this micro-batch
    backwards_ = 0;
  }
  if (in_turns) {
    const Pass own = pass_;
    own.turns->pass(own.number);
    pass_ = own;
  }
  return last_norm_;
}

// A step needs the gradients of all micro-batches.
void ManualOptimization::require_same_call(size_t optimizer) {
  const size_t call = pass_.calls++;
  if (pass_.first) return calls_.push_back(optimizer);
  if (call < calls_.size() && calls_[call] == optimizer) return;
  throw ConfigError(
      "{}: in the first micro-batch of the batch, this call was {}; step the same optimizers in every micro-batch",
      place_of_step(optimizer),
      call < calls_.size() ? fmt::format("step(\"{}\")", optimizers_.part(calls_[call]).name) : "not made");
}

// Sets the gradients of the optimizer's parameters aside for its step in the last micro-batch.
void ManualOptimization::keep(size_t optimizer) {
  optimizers_.select(optimizer);
  engine_.gradients().set_aside([&](size_t parameter) {
    return optimizers_.selected_has(engine_.facts().tensors.trainable[parameter].name);
  });
  if (!kept_[optimizer]) kept_[optimizer].emplace();
  kept_[optimizer]->loss += totals_.loss;
  kept_[optimizer]->counts[0] += totals_.counts[0];
  kept_[optimizer]->backwards += totals_.backwards;
  totals_ = Totals();
  backwards_ = 0;
  ++steps_;
}

void ManualOptimization::restore(size_t optimizer) {
  const auto kept = std::exchange(kept_[optimizer], std::nullopt);
  if (!kept) return;
  optimizers_.select(optimizer);
  engine_.gradients().restore([&](size_t parameter) {
    return optimizers_.selected_has(engine_.facts().tensors.trainable[parameter].name);
  });
  totals_.loss += kept->loss;
  totals_.counts[0] += kept->counts[0];
  totals_.backwards += kept->backwards;
}

// Takes no step: in a call before that of the search, it was taken already.
double ManualOptimization::repeat_step(size_t optimizer, const Loss* loss) {
  if (loss != nullptr) run_backward(*loss, parallel::Reduce::never, place_of_step(optimizer));
  if (pass_.calls++ == search_->call) {
    optimizers_.select(optimizer);
    for (const parallel::NamedParameter& parameter : engine_.facts().tensors.trainable) {
      const Tensor& gradient = parameter.tensor.grad();
      if (!gradient.defined() || !optimizers_.selected_has(parameter.name)) continue;
      if (!gradient.isfinite().all().item<bool>()) search_->is_finite = false;
    }
    throw Found{};
  }
  engine_.gradients().clear();
  backwards_ = 0;
  return last_norm_;
}

// The sums of the losses since the last step, over all ranks.
struct ManualOptimization::Sums {
  double loss = 0, count = 0;
  std::string nonfinite_ranks = {};  // " on rank 1": where the loss is not finite; or ""
};

// REQUIRES: the gradients are being reduced.
ManualOptimization::Sums ManualOptimization::sum_totals(size_t optimizer) {
  std::vector<double> totals = totals_.counts;
  totals.push_back(totals_.loss);
  trainer::append_calls(totals,
                        {.optimizer = static_cast<int64_t>(optimizer),
                         .backwards = totals_.backwards,
                         .loss_is_finite = std::isfinite(totals_.loss)},
                        rank_, world_size_);
  engine_.finish(totals);
  totals_ = Totals(pass_.parts);
  backwards_ = 0;
  const std::map<int, trainer::RankCalls> calls = trainer::take_calls(totals, world_size_);
  require_equal_calls(calls, optimizer);
  Sums sums = {.loss = totals.back()};
  totals.pop_back();
  sums.count = parallel::sum_in_fixed_order(std::move(totals));
  if (sums.count <= 0)
    throw DataError(
        "{}: the losses of the global batch count {} samples; give backward() or step() their number",
        place_of_step(optimizer), sums.count);
  const auto ranks = trainer::ranks_by(&trainer::RankCalls::loss_is_finite, calls);
  if (calls.size() > 1 && ranks.contains(false)) sums.nonfinite_ranks = " on " + rank_list(ranks.at(false));
  return sums;
}

// Without it, gradients of different losses would be added, or those of a loss counted twice.
void ManualOptimization::require_equal_calls(const std::map<int, trainer::RankCalls>& calls,
                                             size_t optimizer) const {
  std::vector<std::string> found;
  if (const auto ranks = trainer::ranks_by(&trainer::RankCalls::optimizer, calls); ranks.size() > 1) {
    for (const auto& [number, of] : ranks)
      found.push_back(fmt::format("step(\"{}\") on {}", optimizers_.part(static_cast<size_t>(number)).name,
                                  rank_list(of)));
    throw ConfigError("{}; all ranks must step the same optimizers in the same order",
                      place_of(fmt::format("{}", fmt::join(found, ", but "))));
  }
  if (const auto ranks = trainer::ranks_by(&trainer::RankCalls::backwards, calls); ranks.size() > 1) {
    for (const auto& [times, of] : ranks)
      found.push_back(fmt::format("{} on {}", counted(times, "time"), rank_list(of)));
    throw ConfigError(
        "{}: backward was called {} since the last step; all ranks must call it equally often, also a rank without samples",
        place_of_step(optimizer), fmt::join(found, ", but "));
  }
}

double ManualOptimization::finish_step(size_t index) {
  const Sums sums = sum_totals(index);
  const bool is_fp16 = training_.precision == Precision::fp16;
  optimizers_.select(index);
  parallel::GradientView gradients = engine_.gradients();
  const auto& parameters = engine_.facts().tensors.trainable;
  gradients.clear([&](size_t parameter) { return !optimizers_.selected_has(parameters[parameter].name); });
  double norm = gradients.norm();
  const bool overflows = is_fp16 && !std::isfinite(norm);
  if (!std::isfinite(sums.loss) || (!std::isfinite(norm) && !overflows)) {
    const std::string parameter = gradients.first_nonfinite();
    const std::string rest = fmt::format("{}; lower the learning rate of \"{}\", or inspect the batch",
                                         parameter.empty() ? "" : ", first in the gradient of " + parameter,
                                         optimizers_.part(index).name);
    if (std::isfinite(sums.loss))
      throw trainer::NonfiniteGradient(place_of_step(index) + ": the gradient is not finite", rest,
                                       pass_.calls - 1);
    throw Error("{}: the loss is not finite{}{}", place_of_step(index), sums.nonfinite_ranks, rest);
  }
  const double divisor = sums.count * pass_.loss_factor, before = norm / divisor;
  ++steps_;
  if (!norm_) norm_ = before;
  if (overflows) {
    gradients.clear();
    overflowed_ = true;
    return before;
  }
  if (training_.max_grad_value) {
    gradients.clamp(*training_.max_grad_value * divisor);
    norm = gradients.norm();
  }
  const NamedOptimizer& part = optimizers_.part(index);
  const optim::StepRates rates = part.schedule->rates(part.optimizer->steps_done());
  engine_.step({.rates = rates,
                .grad_scale = parallel::clip_scale(norm / divisor, training_.max_grad_norm) / divisor,
                .averages = false});
  forget_casts();
  // The parameters were written through the engine's buffers. Autograd refuses a graph of earlier values.
  for (const parallel::NamedParameter& parameter : parameters) {
    if (optimizers_.selected_has(parameter.name)) parameter.tensor.unsafeGetTensorImpl()->bump_version();
  }
  return before;
}

double ManualOptimization::lr(const std::string& optimizer) const {
  const NamedOptimizer& part = optimizers_.part(optimizers_.index(optimizer, "lr"));
  return part.schedule->rates(part.optimizer->steps_done()).lr;
}

int64_t ManualOptimization::steps_done(const std::string& optimizer) const {
  return optimizers_.part(optimizers_.index(optimizer, "steps_done")).optimizer->steps_done();
}

void ManualOptimization::begin(const Pass& pass) {
  pass_ = pass;
  pass_.running = true;
  if (!pass.first) return;
  totals_ = Totals(pass.parts);
  steps_ = 0;
  calls_.clear();
  norm_ = std::nullopt;
  overflowed_ = false;
}

void ManualOptimization::end() {
  pass_.running = false;
  if (search_) {
    engine_.gradients().clear();
    backwards_ = 0;
    return;
  }
  const std::string place = place_of("training_step");
  require_own_tensors(place);
  if (backwards_ > 0) {
    throw ConfigError(
        "{} called backward after its last step of an optimizer; call step() with the optimizer that these gradients are for",
        place);
  }
  if (pass_.calls < calls_.size()) {
    throw ConfigError(
        "{} stepped \"{}\" in the first micro-batch of the batch, but not in a later one; step the same optimizers in every micro-batch",
        place, optimizers_.part(calls_[pass_.calls]).name);
  }
  if (!pass_.last) return;
  if (steps_ == 0) {
    throw ConfigError("{} stepped no optimizer; call context.manual().step(\"{}\")", place,
                      optimizers_.part(0).name);
  }
  ++batches_done_;
  engine_.average_weights(batches_done_);
}

void ManualOptimization::add_state(State& state) const {
  nlohmann::json& own = state.scalars["manual"] = {{"batches", batches_done_}};
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    const NamedOptimizer& part = optimizers_.part(i);
    own["optimizers"][part.name] = fmt::format("{} of {}", part.optimizer->name(), part.pattern);
    own["rates"][part.name] =
        fmt::format("lr {:g}, {}", part.optimizer->base_rates().lr, part.schedule->name());
  }
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
