#include "stretto/trainer/run/evaluator.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/metric_value.h"
#include "stretto/base/number_text.h"
#include "stretto/data/identity.h"
#include "stretto/tensor/autocast.h"
#include "stretto/trainer/run/evaluate.h"
#include "stretto/trainer/run/session.h"

namespace stretto::trainer {
std::string one_line(const Metrics& metrics) {
  std::string line;
  for (const auto& [name, value] : metrics) line += (line.empty() ? "" : " | ") + metric_text(name, value);
  return line;
}

Evaluator::Evaluator(Session& session, const data::Dataset* validation, const ValidationSets& others)
    : recipe_(session.recipe),
      session_(session),
      every_(session.recipe.evaluate.every, session.is_main_rank()) {
  if (recipe_.evaluate.every.never() || validation == nullptr) return;
  sets_.push_back(limit("", *validation));
  for (const auto& [name, samples] : others) sets_.push_back(limit(name, *samples));
}

Evaluator::Samples Evaluator::limit(const std::string& set, const data::Dataset& all) const {
  Samples samples = {.set = set, .all = &all};
  const auto& most = recipe_.evaluate.max_samples;
  if (most && *most < all.size()) samples.limited.emplace(all, data::evenly_spaced(all.size(), *most));
  return samples;
}

std::optional<int64_t> Evaluator::after(const StepReport& report, bool last) const {
  if (!in_use() || !(last || every_.due(report, report.requests.evaluate))) return std::nullopt;
  return done_ + 1;
}

Metrics Evaluator::measure(const std::string& set, const data::Dataset& samples) {
  session_.engine.weights().catch_up();
  session_.engine.synchronise_buffers();
  const parallel::AveragedWeights average = session_.engine.weights().averaged(recipe_.ema.evaluate);
  const EvaluationOptions options = {.batch_size = evaluation_batch_size(recipe_),
                                     .device = session_.device,
                                     .kernels = nn::parse_kernels(recipe_.training.kernels),
                                     .autocast = session_.compute.autocast,
                                     .collective_forward = session_.engine.facts().passes_are_collective,
                                     .validation_set = set};
  const Evaluation evaluation = trainer::evaluate(session_.module, samples, session_.mesh, options);
  const bool has_table = recipe_.evaluate.by_class && !evaluation.predictions.empty();
  table_ = has_table ? session_.module.table(evaluation.predictions) : "";
  const Metrics measured = measure_everywhere(session_.module, evaluation, session_.mesh);
  if (set.empty()) return measured;
  Metrics named;
  for (const auto& [name, value] : measured) named[set + "/" + name] = value;
  return named;
}

// Continues the texts of evaluate.samples. The ranks share them, unless they must run forward equally often:
// then each continues all.
std::vector<std::string> Evaluator::write_samples() {
  const std::vector<std::string>& texts = recipe_.evaluate.samples;
  if (texts.empty()) return {};
  session_.engine.weights().catch_up();
  const parallel::AveragedWeights average = session_.engine.weights().averaged(recipe_.ema.evaluate);
  const at::NoGradGuard no_grad;
  std::optional<Autocast> autocast;
  if (session_.compute.autocast) autocast.emplace(session_.device.type(), *session_.compute.autocast);
  session_.module.root().eval();
  Group& group = session_.mesh.group(Axes::data);
  const bool together = session_.engine.facts().passes_are_collective;
  const size_t first = together ? 0 : static_cast<size_t>(group.rank());
  const size_t stride = together ? 1 : static_cast<size_t>(group.size());
  std::vector<std::string> own;
  for (size_t i = first; i < texts.size(); i += stride) own.push_back(texts[i]);
  const auto continuations =
      session_.module.continue_texts(own, nn::parse_kernels(recipe_.training.kernels), together);
  session_.module.root().train();
  const auto bytes = nlohmann::json::to_cbor(continuations);
  const auto gathered = group.all_gather_bytes({bytes.begin(), bytes.end()});
  std::vector<std::string> written;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto of_rank = nlohmann::json::from_cbor(gathered[together ? 0 : i % stride]);
    written.push_back(texts[i] + of_rank.at(i / stride).get<std::string>());
  }
  return written;
}

Metrics Evaluator::evaluate(int64_t step, const std::string& may_be_nonfinite) {
  Metrics metrics;
  std::string tables;
  const auto start = std::chrono::steady_clock::now();
  const int64_t batch = evaluation_batch_size(recipe_) * session_.mesh.size(Axes::data);
  speed_ = {};
  for (const Samples& samples : sets_) {
    metrics.merge(measure(samples.set, samples.get()));
    speed_.samples += samples.get().size();
    speed_.steps += (samples.get().size() + batch - 1) / batch;
    if (!table_.empty() && !samples.set.empty()) tables += samples.set + ":\n";
    tables += table_;
  }
  speed_.seconds = seconds_since(start);
  table_ = std::move(tables);
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value) || name == may_be_nonfinite) continue;
    throw Error(
        "step {}: the evaluation's {} ({}) is not finite: the weights overflowed. Lower optimizer.lr or set training.max_grad_norm",
        step, name, number_text(value));
  }
  written_ = write_samples();
  if (step > 0) ++done_;
  every_.restart();
  return metrics;
}

std::optional<Metrics> Evaluator::check() {
  const int64_t batches = recipe_.evaluate.sanity_steps;
  if (batches == 0) return std::nullopt;
  const int64_t count = batches * evaluation_batch_size(recipe_) * session_.mesh.size(Axes::data);
  Metrics metrics;
  for (const Samples& samples : sets_) {
    const data::Dataset& all = samples.get();
    const data::Subset some(all, data::evenly_spaced(all.size(), std::min(count, all.size())));
    metrics.merge(measure(samples.set, some));
  }
  return metrics;
}

// For sets that this run does not evaluate, keeps the identification of the samples that selected the best
// model.
void Evaluator::add_state(State& state) const {
  state.scalars["evaluations"] = done_;
  nlohmann::json validation = evaluated_before_;
  for (const Samples& samples : sets_) validation[samples.set] = data::identify(samples.get());
  state.scalars["validation"] = std::move(validation);
}

void Evaluator::require_same_data(const std::string& set, const nlohmann::json& saved) const {
  const auto now = std::ranges::find(sets_, set, &Samples::set);
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
