#include "stretto/model_config/heads.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/load_weights.h"

namespace stretto {
namespace {

void replace_suffix(std::string& name, const std::string& old_suffix, const std::string& new_suffix) {
  if (name.ends_with(old_suffix))
    name.replace(name.size() - old_suffix.size(), old_suffix.size(), new_suffix);
}

// Files converted from TensorFlow have gamma and beta.
std::string current_norm_name(std::string name) {
  replace_suffix(name, "LayerNorm.gamma", "LayerNorm.weight");
  replace_suffix(name, "LayerNorm.beta", "LayerNorm.bias");
  return name;
}

}  // namespace

WeightReport BertWithHead::load_weights(const std::filesystem::path& folder) {
  const std::string prefix = std::string(config_.variant().encoder_name) + ".";
  const bool pools = head_ == heads::sequence_classification && config_.variant().has_pooler;
  const auto is_leftover = [&](const std::string& name) {
    return name.starts_with("cls.") || name.starts_with("lm_head.") ||
           name.starts_with("discriminator_predictions.") || name.starts_with("generator_predictions.") ||
           name.starts_with("generator_lm_head.") || name.ends_with("embeddings.position_ids") ||
           (!pools && name.starts_with(prefix + "pooler."));
  };
  return load_encoder_weights(*this, head_, folder,
                              {.prefix = prefix,
                               .parts = {"embeddings.", "embeddings_project.", "encoder.", "pooler."},
                               .renamed = current_norm_name,
                               .is_leftover = is_leftover});
}

}  // namespace stretto
