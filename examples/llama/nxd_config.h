#pragma once

#include <optional>
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

// Parameters are always created without memory, and drawn by their position in the model.
struct NxdModelInitConfig {
  bool meta_device_init = true;
  int64_t sequential_move_factor = 11;
  std::optional<std::string> param_init_fn;

  void fields(stretto::settings::Fields& field) {
    field("meta_device_init", meta_device_init, "always");
    field("sequential_move_factor", sequential_move_factor, "without effect");
    field("param_init_fn", param_init_fn, "null");
  }
};

struct NxdConfig {
  int64_t tensor_parallel_size = 1, pipeline_parallel_size = 1, context_parallel_size = 1,
          expert_parallel_size = 1, lnc_size = 1;
  std::optional<stretto::settings::FileOrSection> pipeline_config, lora_config;
  std::optional<std::string> activation_checkpoint_config;
  bool sequence_parallel = false, pad_model = false;
  NxdOptimizerConfig optimizer_config;
  NxdMixedPrecisionConfig mixed_precision_config;
  NxdModelInitConfig model_init_config;

  void fields(stretto::settings::Fields& field) {
    using stretto::settings::at_least;
    field("tensor_parallel_size", tensor_parallel_size, "ranks per layer", at_least(1));
    field("pipeline_parallel_size", pipeline_parallel_size, "1", at_least(1));
    field("context_parallel_size", context_parallel_size, "1", at_least(1));
    field("expert_parallel_size", expert_parallel_size, "1", at_least(1));
    field("pipeline_config", pipeline_config, "null");
    field("activation_checkpoint_config", activation_checkpoint_config, "blocks that are computed again",
          stretto::settings::one_of({"full", "none"}));
    field("pad_model", pad_model, "false");
    field("sequence_parallel", sequence_parallel, "whether the ranks of a layer divide rows between layers");
    field("lora_config", lora_config, "null");
    field("lnc_size", lnc_size, "of Neuron cores, without effect");
    field("optimizer_config", optimizer_config, "the optimizer");
    field("mixed_precision_config", mixed_precision_config, "the precision of weights and gradients");
    field("model_init_config", model_init_config, "how the model is created");
  }
};

// Throws ConfigError for what this version has not, with the place in `origins`.
inline void require_supported(const NxdConfig& config, const stretto::settings::Origins& origins = {}) {
  const auto require = [&](const char* key, bool holds, const char* reason) {
    if (!holds) throw stretto::ConfigError("{}: {}", origins.label(key), reason);
  };
  const char* const stages = "layers are not divided into stages in this version; expected 1, or null";
  require("pipeline_parallel_size", config.pipeline_parallel_size == 1, stages);
  require("pipeline_config", !config.pipeline_config, stages);
  require("context_parallel_size", config.context_parallel_size == 1,
          "sequences are not divided among ranks in this version; expected 1");
  require("expert_parallel_size", config.expert_parallel_size == 1,
          "there are no experts in this version; expected 1");
  require(
      "pad_model", !config.pad_model,
      "heads that the ranks cannot divide are not padded; expected false, and another tensor_parallel_size");
  require("lora_config", !config.lora_config, "adapters are not available in this version; expected null");
  require("model_init_config.param_init_fn", !config.model_init_config.param_init_fn,
          "initial values are those of the model's config.json; expected null");
}

// Throws ConfigError with line and column for an unknown key, a value of another type, and what this version
// has not.
inline NxdConfig read_nxd_config(const std::filesystem::path& file) {
  NxdConfig config;
  require_supported(config, stretto::settings::read_fields(
                                stretto::settings::fields_of(config),
                                stretto::settings::parse_yaml(stretto::read_file(file), file.string())));
  return config;
}

// What NeuronXLAStrategy(nxd_config) decides, as settings of a recipe. Throws ConfigError for what this
// version has not.
inline std::vector<std::string> strategy_settings(const NxdConfig& config) {
  require_supported(config);
  const NxdOptimizerConfig& optimizer = config.optimizer_config;
  return {"training.mesh.tp=" + std::to_string(config.tensor_parallel_size),
          std::string("training.mesh.sequence_parallel=") +
              (config.sequence_parallel && config.tensor_parallel_size > 1 ? "true" : "false"),
          std::string("training.strategy=") + (optimizer.zero_one_enabled ? "zero1" : "ddp"),
          "training.max_grad_norm=" + std::to_string(optimizer.grad_clipping ? optimizer.max_grad_norm : 0),
          std::string("training.activation_checkpointing=") +
              (config.activation_checkpoint_config == "full" ? "1" : "0")};
}
