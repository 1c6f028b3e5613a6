#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/config/recipe.h"

namespace stretto::compat {

// Reads configuration files of other tools as settings of a recipe.

// A setting of a recipe that such a file sets.
struct ForeignSetting {
  std::string name;      // the recipe's name: "training.batch_size"
  std::string value;     // in the syntax of --set
  std::string place;     // "ds_config.json:3:14: train_micro_batch_size_per_gpu"
  bool implied = false;  // a default of the tool, which the recipe may override
};

struct ForeignConfig {
  std::vector<ForeignSetting> settings;
  std::vector<std::string> notes;  // a line per ignored key, with the reason
  std::optional<int64_t> ranks;    // the number of ranks on this host
  std::string ranks_place;
  struct Hosts {
    std::optional<int64_t> nodes, node_rank, master_port;
    std::optional<std::string> master_addr;
    std::string place;  // the place of the number of hosts
  } hosts = {};
};

// Reads a DeepSpeed configuration (ds_config.json): ZeRO stage, precision, batch sizes, clipping, optimizer,
// scheduler. "auto" leaves a setting to the recipe. Throws ConfigError, which begins with file:line:column:
// key, for unknown keys and unsupported values.
ForeignConfig read_deepspeed(const std::filesystem::path& file);

// Reads a configuration of `accelerate config` (YAML) for DDP, FSDP or DeepSpeed. Throws like read_deepspeed.
ForeignConfig read_accelerate(const std::filesystem::path& file);

// Reads a parameters.yml of pytorch_universal_trainer: sharding, ranks, and the keys that correspond to
// settings. Throws like read_deepspeed.
ForeignConfig read_universal_trainer(const std::filesystem::path& file);

// Reads a hyperparameter file of AcceleratorModule, hps_config.yaml: epochs or max_steps, batch size,
// optimizer and scheduler. Throws like read_deepspeed.
ForeignConfig read_hps(const std::filesystem::path& file);

// Like load_recipe(), with the settings of `foreign`. Throws ConfigError, with both places, if the recipe or
// `overrides` set another value.
Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::vector<settings::Field>& program, const ForeignConfig& foreign);

}  // namespace stretto::compat
