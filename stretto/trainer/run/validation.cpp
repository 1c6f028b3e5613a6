#include "stretto/trainer/run/validation.h"

#include <chrono>
#include <functional>

#include "stretto/base/clock.h"
#include "stretto/tensor/autocast.h"
#include "stretto/trainer/run/evaluate.h"

namespace stretto::trainer {
namespace {

// Whether the value is true on any rank. Collective.
bool any_rank(Group& group, bool value) {
  const Tensor ranks = at::full({1}, value ? 1 : 0, at::TensorOptions(at::kInt).device(group.device()));
  group.all_reduce(ranks, ReduceOp::sum).wait();
  return ranks.item<int>() > 0;
}

}  // namespace

std::vector<ValidationSamples> validation_samples(const Recipe& recipe, const data::Dataset* validation,
                                                  const ValidationSets& others) {
  std::vector<ValidationSamples> sets;
  if (recipe.evaluate.every.never() || validation == nullptr) return sets;
  const auto& most = recipe.evaluate.max_samples;
  const auto add = [&](const std::string& set, const data::Dataset& all) {
    ValidationSamples& samples = sets.emplace_back(ValidationSamples{.set = set, .all = &all});
    if (most && *most < all.size()) samples.limited.emplace(all, data::evenly_spaced(all.size(), *most));
  };
  add("", *validation);
  for (const auto& [name, samples] : others) add(name, *samples);
  return sets;
}

nlohmann::json Validated::to_json() const {
  return {{"metrics", metrics},   {"seconds", speed.seconds}, {"samples", speed.samples},
          {"steps", speed.steps}, {"table", table},           {"texts", texts}};
}

Validated Validated::from_json(const nlohmann::json& json) {
  return {.metrics = json.at("metrics").get<Metrics>(),
          .speed = {.seconds = json.at("seconds").get<double>(),
                    .samples = json.at("samples").get<int64_t>(),
                    .steps = json.at("steps").get<int64_t>()},
          .table = json.at("table").get<std::string>(),
          .texts = json.at("texts").get<std::vector<std::string>>()};
}

Metrics measure_set(const Recipe& recipe, Module& module, const Mesh& mesh, const ValidationPass& pass,
                    const std::string& set, const data::Dataset& samples, std::string* table) {
  const EvaluationOptions options = {.batch_size = evaluation_batch_size(recipe),
                                     .device = pass.device,
                                     .kernels = nn::parse_kernels(recipe.training.kernels),
                                     .autocast = pass.autocast,
                                     .collective_forward = pass.collective_forward,
                                     .validation_set = set};
  const Evaluation evaluation = evaluate(module, samples, mesh, options);
  if (table != nullptr && recipe.evaluate.by_class && !evaluation.predictions.empty())
    *table = module.table(evaluation.predictions);
  const Metrics measured = measure_everywhere(module, evaluation, mesh);
  if (set.empty()) return measured;
  Metrics named;
  for (const auto& [name, value] : measured) named[set + "/" + name] = value;
  return named;
}

Validated validate(const Recipe& recipe, Module& module, const Mesh& mesh, const ValidationPass& pass,
                   const std::vector<ValidationSamples>& sets) {
  Validated result;
  const auto start = std::chrono::steady_clock::now();
  const int64_t batch = evaluation_batch_size(recipe) * mesh.size(Axes::data);
  for (const ValidationSamples& samples : sets) {
    std::string table;
    result.metrics.merge(measure_set(recipe, module, mesh, pass, samples.set, samples.get(), &table));
    result.speed.samples += samples.get().size();
    result.speed.steps += (samples.get().size() + batch - 1) / batch;
    if (!table.empty() && !samples.set.empty()) result.table += samples.set + ":\n";
    result.table += table;
  }
  result.speed.seconds = seconds_since(start);
  return result;
}

std::vector<std::string> continue_texts(const Recipe& recipe, Module& module, const Mesh& mesh,
                                        const ValidationPass& pass) {
  const std::vector<std::string>& texts = recipe.evaluate.samples;
  if (texts.empty()) return {};
  const at::NoGradGuard no_grad;
  std::optional<Autocast> autocast;
  if (pass.autocast) autocast.emplace(pass.device.type(), *pass.autocast);
  module.root().eval();
  Group& group = mesh.group(Axes::data);
  const auto stride = static_cast<size_t>(group.size());
  std::vector<std::string> own;
  for (auto i = static_cast<size_t>(group.rank()); i < texts.size(); i += stride) own.push_back(texts[i]);
  std::function<bool(bool)> next_pass;
  if (pass.collective_forward) next_pass = [&](bool continues) { return any_rank(group, continues); };
  const auto continuations =
      module.continue_texts(own, nn::parse_kernels(recipe.training.kernels), next_pass);
  module.root().train();
  const auto bytes = nlohmann::json::to_cbor(continuations);
  const auto gathered = group.all_gather_bytes({bytes.begin(), bytes.end()});
  std::vector<std::string> written;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto of_rank = nlohmann::json::from_cbor(gathered[i % stride]);
    written.push_back(texts[i] + of_rank.at(i / stride).get<std::string>());
  }
  return written;
}

}  // namespace stretto::trainer
