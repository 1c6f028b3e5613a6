#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/config/recipe.h"

namespace stretto {

// Configuration files of other tools, as settings of a recipe.

// A setting that such a file determines.
struct ForeignSetting {
  std::string name;      // of the recipe: "training.batch_size"
  std::string value;     // as in --set
  std::string place;     // "ds_config.json:3:14: train_micro_batch_size_per_gpu"
  bool implied = false;  // the tool's default, which the recipe may override
};

struct ForeignConfig {
  std::vector<ForeignSetting> settings;
  std::vector<std::string> notes;  // a line per key that has no meaning here, with the reason
  std::optional<int64_t> ranks;    // on this host
  std::string ranks_place;
  struct Hosts {
    std::optional<int64_t> nodes, node_rank, master_port;
    std::optional<std::string> master_addr;
    std::string place;  // of the number of hosts
  } hosts = {};
};

// A DeepSpeed configuration (ds_config.json): ZeRO stage, precision, batch sizes, clipping, optimizer, scheduler. "auto"
// leaves a setting to the recipe. Throws ConfigError, which begins with file:line:column: key, for unknown keys and for
// what cannot be honoured.
ForeignConfig read_deepspeed(const std::filesystem::path& file);

// A configuration of `accelerate config` (YAML) for DDP, FSDP or DeepSpeed. Throws like read_deepspeed.
ForeignConfig read_accelerate(const std::filesystem::path& file);

// A parameters.yml of pytorch_universal_trainer: sharding, ranks, and those of its other keys that are settings here. Throws
// like read_deepspeed.
ForeignConfig read_universal_trainer(const std::filesystem::path& file);

// A hyperparameter file of AcceleratorModule, hps_config.yaml: epochs or max_steps, batch size, optimizer and scheduler. Throws
// like read_deepspeed.
ForeignConfig read_hps(const std::filesystem::path& file);

// load_recipe() with these settings in addition. Throws ConfigError, with both places, if the recipe or `overrides` set
// another value.
Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::vector<settings::Field>& program, const ForeignConfig& foreign);

}  // namespace stretto
