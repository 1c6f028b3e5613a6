#include "stretto/trainer/run/evaluator.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/number_text.h"
#include "stretto/data/identity.h"
#include "stretto/trainer/run/evaluate.h"
#include "stretto/trainer/run/session.h"

namespace stretto::trainer {

Evaluator::Evaluator(Session& session, const data::Dataset* validation, const ValidationSets& others)
    : recipe_(session.recipe),
      session_(session),
      sets_(validation_samples(session.recipe, validation, others)),
      every_(session.recipe.evaluate.every, session.is_main_rank()) {}

std::optional<int64_t> Evaluator::after(const StepReport& report, bool last) const {
  if (!in_use() || !(last || every_.due(report, report.requests.evaluate))) return std::nullopt;
  return done_ + 1;
}

std::optional<int64_t> Evaluator::first() const {
  using Unit = Interval::Unit;
  const Interval& every = every_.every();
  if (!in_use() || every.unit() == Unit::seconds) return std::nullopt;
  int64_t first = session_.total_steps();  // a run is evaluated at its end
  if (every.unit() == Unit::steps) first = std::min(first, static_cast<int64_t>(every.count()));
  if (every.unit() != Unit::epochs) return first;
  const double whole = std::floor(every.count());
  int64_t steps = session_.cursor.steps_left(whole);
  if (every.count() > whole) {
    const int64_t batch = session_.mesh.batch_plan().global_batch_size;
    if (batch == 0) return std::nullopt;  // training.max_tokens
    const double samples = (every.count() - whole) * static_cast<double>(session_.train.size());
    steps += static_cast<int64_t>(std::ceil(samples / static_cast<double>(batch) - 1e-9));
  }
  return std::min(first, steps);
}

void Evaluator::with_weights(const std::function<void(const ValidationPass&)>& use) {
  session_.engine.weights().catch_up();
  session_.engine.synchronise_buffers();
  const parallel::AveragedWeights average = session_.engine.weights().averaged(recipe_.ema.evaluate);
  use({.device = session_.device,
       .autocast = session_.compute.autocast,
       .collective_forward = session_.engine.facts().passes_are_collective});
}

void Evaluator::count() {
  ++done_;
  every_.restart();
}

void Evaluator::require_finite(int64_t step, const Metrics& metrics, const std::string& may_be_nonfinite) {
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value) || name == may_be_nonfinite) continue;
    throw Error(
        "step {}: the evaluation's {} ({}) is not finite: the weights overflowed. Lower optimizer.lr or set training.max_grad_norm",
        step, name, number_text(value));
  }
}

Validated Evaluator::evaluate(int64_t step, const std::string& may_be_nonfinite) {
  Validated result;
  with_weights([&](const ValidationPass& pass) {
    result = validate(recipe_, session_.module, session_.mesh, pass, sets_);
    require_finite(step, result.metrics, may_be_nonfinite);
    result.texts = continue_texts(recipe_, session_.module, session_.mesh, pass);
  });
  every_.restart();
  return result;
}

std::optional<Metrics> Evaluator::check() {
  const int64_t batches = recipe_.evaluate.sanity_steps;
  if (batches == 0) return std::nullopt;
  const int64_t count = batches * evaluation_batch_size(recipe_) * session_.mesh.size(Axes::data);
  Metrics metrics;
  with_weights([&](const ValidationPass& pass) {
    for (const ValidationSamples& samples : sets_) {
      const data::Dataset& all = samples.get();
      const data::Subset some(all, data::evenly_spaced(all.size(), std::min(count, all.size())));
      metrics.merge(measure_set(recipe_, session_.module, session_.mesh, pass, samples.set, some));
    }
  });
  return metrics;
}

nlohmann::json Evaluator::identities() const {
  nlohmann::json all = nlohmann::json::object();
  for (const ValidationSamples& samples : sets_) all[samples.set] = data::identify(samples.get());
  return all;
}

// For sets that this run does not evaluate, keeps the identification of the samples that selected the best
// model.
void Evaluator::add_state(State& state) const {
  state.scalars["evaluations"] = done_;
  nlohmann::json validation = evaluated_before_;
  validation.update(identities());
  state.scalars["validation"] = std::move(validation);
}

void Evaluator::require_same_data(const std::string& set, const nlohmann::json& saved) const {
  const auto now = std::ranges::find(sets_, set, &ValidationSamples::set);
  if (now == sets_.end()) return;
  const std::string name = "the validation data" + (set.empty() ? "" : " \"" + set + "\"");
  const std::string other = data::difference(name, saved, now->get());
  if (other.empty()) return;
  if (std::ranges::find(recipe_.checkpoint.accept_changes, "data.validation") !=
      recipe_.checkpoint.accept_changes.end()) {
    log::warning("{}; the best model, early stopping and schedules compare scores of both", other);
    return;
  }
  throw ConfigError(
      "{}; scores of the two would be compared to choose the best model. Restore the data, choose another output, or accept the change with --set 'checkpoint.accept_changes=[data.validation]'",
      other);
}

void Evaluator::resume(const State& state) {
  evaluated_before_ = state.scalar("validation");
  for (const auto& [set, saved] : evaluated_before_.items()) require_same_data(set, saved);
  state.scalar("evaluations").get_to(done_);
}

}  // namespace stretto::trainer
