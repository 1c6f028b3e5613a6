#include <algorithm>

#include "stretto/models/bert/model.h"
#include "stretto/models/config_json.h"

namespace stretto {
namespace {

void replace_suffix(std::string& name, const std::string& old_suffix, const std::string& new_suffix) {
  if (name.ends_with(old_suffix))
    name.replace(name.size() - old_suffix.size(), old_suffix.size(), new_suffix);
}

// The current name of a weight: files converted from TensorFlow have gamma and beta, encoders saved without a head lack
// the prefix.
std::string current_name(std::string name) {
  replace_suffix(name, "LayerNorm.gamma", "LayerNorm.weight");
  replace_suffix(name, "LayerNorm.beta", "LayerNorm.bias");
  for (const char* part : {"embeddings.", "encoder.", "pooler."}) {
    if (name.rfind(part, 0) == 0) return "bert." + name;
  }
  return name;
}

// Whether a weight belongs to another head or an older version; such weights are not reported as unexpected.
bool is_known_leftover(const std::string& name) {
  return name.rfind("cls.", 0) == 0 || name.ends_with("embeddings.position_ids");
}

// Whether the folder's config.json names a head other than `head`, whose weights have the same names.
bool has_another_head(const std::filesystem::path& folder, Head head) {
  if (!std::filesystem::exists(folder / "config.json")) return false;
  const std::string architecture = architecture_of(read_config_json(folder / "config.json"));
  return architecture.find("For") != std::string::npos &&
         !architecture.ends_with(std::string("For") + name_of(head));
}

}  // namespace

WeightReport BertWithHead::load_weights(const std::filesystem::path& folder) {
  NamedTensors weights;
  for (auto& [name, tensor] : load_hf_weights(folder)) weights[current_name(name)] = tensor;
  if (has_another_head(folder, head_))
    std::erase_if(weights, [](const auto& item) { return !item.first.starts_with("bert."); });
  NamedTensors parameters;
  for (const auto& item : named_parameters()) parameters[item.key()] = item.value();
  WeightReport report = set_weights(weights, parameters, folder.string());
  std::erase_if(report.unexpected, is_known_leftover);
  if (head_ != Head::sequence_classification)
    std::erase_if(report.unexpected,
                  [](const std::string& name) { return name.starts_with("bert.pooler."); });
  return report;
}

}  // namespace stretto
