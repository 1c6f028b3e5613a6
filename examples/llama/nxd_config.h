#pragma once

#include <string>
#include <vector>

#include "stretto/settings/yaml.h"
#include "stretto/stretto.h"

// NeuronxDistributed's nxd_config: its keys by name, from a struct or a JSON file.

struct NxdOptimizerConfig {
  bool zero_one_enabled = false, grad_clipping = true;
  double max_grad_norm = 1;

  void fields(stretto::settings::Fields& field) {
    field("zero_one_enabled", zero_one_enabled, "divide the optimizer's state among the data ranks");
    field("grad_clipping", grad_clipping, "clip gradients");
    field("max_grad_norm", max_grad_norm, "to this global norm", stretto::settings::above(0));
  }
};

struct NxdMixedPrecisionConfig {
  bool use_master_weights = true, use_fp32_grad_acc = true, use_master_weights_in_ckpt = true;

  // Master weights, gradients and checkpoints are always fp32.
  void fields(stretto::settings::Fields& field) {
    field("use_master_weights", use_master_weights, "always");
    field("use_fp32_grad_acc", use_fp32_grad_acc, "always");
    field("use_master_weights_in_ckpt", use_master_weights_in_ckpt, "always");
  }
};

struct NxdModelInitConfig {
  bool meta_device_init = true;

  void fields(stretto::settings::Fields& field) {
    field("meta_device_init", meta_device_init, "always: parameters are created without memory");
  }
};

struct NxdConfig {
  int64_t tensor_parallel_size = 1, pipeline_parallel_size = 1;
  bool sequence_parallel = false;
  std::string activation_checkpoint_config = "none";
  NxdOptimizerConfig optimizer_config;
  NxdMixedPrecisionConfig mixed_precision_config;
  NxdModelInitConfig model_init_config;

  void fields(stretto::settings::Fields& field) {
    using stretto::settings::at_least;
    field("tensor_parallel_size", tensor_parallel_size, "ranks per layer", at_least(1));
    field("pipeline_parallel_size", pipeline_parallel_size, "1", at_least(1).at_most(1));
    field("sequence_parallel", sequence_parallel, "whether the ranks of a layer divide rows between layers");
    field("activation_checkpoint_config", activation_checkpoint_config, "blocks that are computed again",
          stretto::settings::one_of({"full", "none"}));
    field("optimizer_config", optimizer_config, "the optimizer");
    field("mixed_precision_config", mixed_precision_config, "the precision of weights and gradients");
    field("model_init_config", model_init_config, "how the model is created");
  }
};

// Throws ConfigError with line and column for an unknown key or a value of another type.
inline NxdConfig read_nxd_config(const std::filesystem::path& file) {
  NxdConfig config;
  stretto::settings::read_fields(stretto::settings::fields_of(config),
                                 stretto::settings::parse_yaml(stretto::read_file(file), file.string()));
  return config;
}

// What NeuronXLAStrategy(nxd_config) decides, as settings of a recipe.
inline std::vector<std::string> strategy_settings(const NxdConfig& config) {
  const NxdOptimizerConfig& optimizer = config.optimizer_config;
  return {"training.mesh.tp=" + std::to_string(config.tensor_parallel_size),
          std::string("training.mesh.sequence_parallel=") +
              (config.sequence_parallel && config.tensor_parallel_size > 1 ? "true" : "false"),
          std::string("training.strategy=") + (optimizer.zero_one_enabled ? "zero1" : "ddp"),
          "training.max_grad_norm=" + std::to_string(optimizer.grad_clipping ? optimizer.max_grad_norm : 0),
          std::string("training.activation_checkpointing=") +
              (config.activation_checkpoint_config == "full" ? "1" : "0")};
}
