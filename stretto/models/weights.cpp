// The sources of a model's parameters' values (text_model.h).
#include <algorithm>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/model_config/config_json.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {
namespace {

bool has_another_head(const std::filesystem::path& folder, const std::string& head) {
  const std::filesystem::path file = folder / "config.json";
  return std::filesystem::exists(file) && names_another_head(read_config_json(file), head);
}

std::string current_name(std::string name, const WeightNames& names) {
  if (names.renamed) name = names.renamed(std::move(name));
  const bool is_bare =
      std::ranges::any_of(names.parts, [&](const auto& part) { return name.starts_with(part); });
  return is_bare ? names.prefix + name : name;
}

// The weights of a folder under their current names.
NamedTensors current_weights(const std::filesystem::path& folder, const WeightNames& names) {
  NamedTensors weights;
  if (!names.inner.empty() && !std::filesystem::exists(folder / "model.safetensors")) return weights;
  for (auto& [name, tensor] : load_hf_weights(folder)) weights[current_name(name, names)] = tensor;
  if (!names.head.empty() && has_another_head(folder, names.head))
    std::erase_if(weights, [&](const auto& item) { return !item.first.starts_with(names.prefix); });
  return weights;
}

using Shapes = std::map<std::string, std::vector<int64_t>>;

// The global shapes of the parameters whose weights are in the model's own folder.
Shapes own_shapes(const TextModel& model, const WeightNames& names) {
  Shapes shapes;
  for (const nn::LayerParameter& parameter : nn::layer_parameters(model)) {
    const bool is_inner = std::ranges::any_of(
        names.inner, [&](const auto& inner) { return parameter.name.starts_with(inner.prefix); });
    if (!is_inner) shapes[parameter.name] = parameter.layout().global;
  }
  return shapes;
}

// `folder`: for messages.
WeightReport compare(const NamedTensors& weights, const Shapes& parameters, const std::string& folder) {
  WeightReport report;
  for (const auto& [name, shape] : parameters) {
    const auto found = weights.find(name);
    if (found == weights.end()) {
      report.missing.push_back(name);
    } else if (found->second.sizes() != at::IntArrayRef(shape)) {
      throw DataError("{}: {} has shape {}, expected {}; config.json and the weights do not match", folder,
                      name, describe(found->second.sizes()), describe(at::IntArrayRef(shape)));
    }
  }
  for (const auto& [name, weight] : weights) {
    if (!parameters.contains(name)) report.unexpected.push_back(name);
  }
  return report;
}

// Adds rows to the table of token embeddings, the only one whose parameter has vocab_size rows but whose
// weights have fewer.
void add_rows(NamedTensors& weights, const Shapes& parameters, int64_t vocab_size) {
  for (auto& [name, weight] : weights) {
    const auto found = parameters.find(name);
    if (found == parameters.end() || weight.dim() != 2 || found->second.size() != 2) continue;
    const int64_t missing = vocab_size - weight.size(0);
    if (found->second[0] != vocab_size || missing <= 0) continue;
    const Tensor mean = weight.mean(0, /*keepdim=*/true, at::kFloat).to(weight.scalar_type());
    weight = at::cat({weight, mean.expand({missing, -1})});
  }
}

// Adds the weights and differences of a folder. `prefix`: the prefix of the model's parameters in the
// outermost model. `vocab_size`: WeightNames::Inner's.
void collect(const TextModel& model, const std::filesystem::path& folder, const std::string& prefix,
             int64_t vocab_size, NamedTensors& found, WeightReport& report) {
  const WeightNames names = model.weight_names();
  NamedTensors weights = current_weights(folder, names);
  const Shapes shapes = own_shapes(model, names);
  if (vocab_size > 0) add_rows(weights, shapes, vocab_size);
  WeightReport differences = compare(weights, shapes, folder.string());
  if (names.is_leftover) std::erase_if(differences.unexpected, names.is_leftover);
  for (const auto& [name, tensor] : weights)
    if (shapes.contains(name)) found[prefix + name] = tensor;
  for (const std::string& name : differences.missing) report.missing.push_back(prefix + name);
  for (const std::string& name : differences.unexpected) report.unexpected.push_back(prefix + name);
  for (const WeightNames::Inner& inner : names.inner)
    collect(*inner.model, inner.folder, prefix + inner.prefix, inner.vocab_size, found, report);
}

}  // namespace

ModelWeights open_weights(const TextModel& model, const std::filesystem::path& folder) {
  NamedTensors found;
  WeightReport report;
  collect(model, folder, "", /*vocab_size=*/0, found, report);
  return {std::make_unique<MemorySource>(std::move(found)), std::move(report)};
}

std::unique_ptr<TensorSource> initial_values(const TextModel& model, uint64_t seed) {
  auto values = std::make_unique<nn::InitialValues>(seed);
  for (const nn::LayerParameter& parameter : nn::layer_parameters(model))
    values->add(parameter.name, parameter.layout().global, model.initial_value(parameter));
  return values;
}

WeightReport load_weights(TextModel& model, const std::filesystem::path& folder) {
  const ModelWeights weights = open_weights(model, folder);
  nn::fill_parameters(model, *weights.values);
  return weights.report;
}

}  // namespace stretto
