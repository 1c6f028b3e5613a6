#include "stretto/models/load_weights.h"

#include <algorithm>

#include "stretto/model_config/config_json.h"

namespace stretto {
namespace {

bool has_another_head(const std::filesystem::path& folder, const std::string& head) {
  const std::filesystem::path file = folder / "config.json";
  return std::filesystem::exists(file) && names_another_head(read_config_json(file), head);
}

std::string current_name(std::string name, const EncoderNames& names) {
  if (names.renamed) name = names.renamed(std::move(name));
  const bool is_bare =
      std::ranges::any_of(names.parts, [&](const auto& part) { return name.starts_with(part); });
  return is_bare ? names.prefix + name : name;
}

}  // namespace

WeightReport load_encoder_weights(const TextModel& model, const std::string& head,
                                  const std::filesystem::path& folder, const EncoderNames& names) {
  NamedTensors weights;
  for (auto& [name, tensor] : load_hf_weights(folder)) weights[current_name(name, names)] = tensor;
  if (has_another_head(folder, head))
    std::erase_if(weights, [&](const auto& item) { return !item.first.starts_with(names.prefix); });
  NamedTensors parameters;
  for (const auto& item : model.named_parameters()) parameters[item.key()] = item.value();
  WeightReport report =
      set_weights(weights, parameters, folder.string(), /*convert=*/!model.keeps_file_types());
  if (names.is_leftover) std::erase_if(report.unexpected, names.is_leftover);
  return report;
}

}  // namespace stretto
