#include "stretto/config/topology_request.h"

namespace stretto {

OptionLabels training_labels(const settings::Origins& origins) {
  const auto name = [](const std::string& option) { return "training." + option; };
  return {.label = [=](const std::string& option) { return origins.label(name(option)) + ": "; },
          .mention = [=](const std::string& option) { return origins.mention(name(option)); },
          .given = [=](const std::string& option) { return origins.given(name(option)); }};
}

TopologyRequest topology_request(const Recipe& recipe) {
  const TrainingConfig& training = recipe.training;
  return {.strategy = training.strategy,
          .dp_shard = training.dp_shard,
          .tp = training.mesh.tp,
          .dp = training.mesh.data_ranks(),
          .batch = {.batch_size = training.batch_size,
                    .global_batch_size = training.global_batch_size,
                    .grad_accumulation_steps = training.grad_accumulation_steps,
                    .max_tokens = training.max_tokens,
                    .deterministic = training.deterministic},
          .labels = training_labels(recipe.origins)};
}

}  // namespace stretto
