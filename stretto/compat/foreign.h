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
  std::string name;         // the recipe's name: "training.batch_size"
  std::string value;        // in the syntax of --set
  std::string place;        // "ds_config.json:3:14: train_micro_batch_size_per_gpu"
  bool implied = false;     // a default of the tool, which the recipe may override
  std::string unless = {};  // another setting that takes the place of this one where the recipe has it
};

// The key of a file for a setting without which nothing can run.
struct ForeignKey {
  std::string setting;  // "model.path"
  std::string place;    // "parameters.yml: transformers-params.pretrained_model_dir"
};

struct ForeignConfig {
  std::vector<std::string> files = {};
  std::vector<ForeignSetting> settings = {};
  std::vector<ForeignKey> keys = {};
  std::vector<std::string> notes = {};     // a line per ignored key, with the reason
  std::vector<std::string> warnings = {};  // a line per key that occurs twice
  std::optional<int64_t> ranks = {};       // the number of ranks on this host
  std::string ranks_place = {};
  struct Hosts {
    std::optional<int64_t> nodes, node_rank, master_port;
    std::optional<std::string> master_addr;
    std::string place, node_rank_place;  // the places of the number of hosts and of node_rank
  } hosts = {};
  // The GPUs to use, "0,2", and the place of their list; empty: all.
  std::string visible_devices = {}, visible_devices_place = {};
  std::string test_place = {};  // of the key by which the file asks for a test instead of training; or empty
  std::string mpirun_place = {};  // of the key by which the file is for ranks that mpirun starts; or empty
  std::string mpirun_hostfile = {};
};

// Reads a DeepSpeed configuration (ds_config.json): ZeRO stage, precision, batch sizes, clipping, optimizer,
// scheduler. "auto" leaves a setting to the recipe. Throws ConfigError, which begins with file:line:column:
// key, for unknown keys and unsupported values.
ForeignConfig read_deepspeed(const std::filesystem::path& file);

// Reads a configuration of `accelerate config` (YAML) for DDP, FSDP or DeepSpeed. Throws like read_deepspeed.
ForeignConfig read_accelerate(const std::filesystem::path& file);

// Reads a parameters.yml of pytorch_universal_trainer: data, model, sharding, ranks, and the keys that
// correspond to settings. Throws like read_deepspeed.
ForeignConfig read_universal_trainer(const std::filesystem::path& file);

// Reads a hyperparameter file of AcceleratorModule, hps_config.yaml: epochs or max_steps, batch size,
// optimizer and scheduler. Throws like read_deepspeed.
ForeignConfig read_hps(const std::filesystem::path& file);

// The files of other tools that a command is given; empty: none.
struct ForeignFiles {
  std::filesystem::path deepspeed, accelerate, parameters, hps;

  bool any() const { return !(deepspeed.empty() && accelerate.empty() && parameters.empty() && hps.empty()); }
  bool operator==(const ForeignFiles&) const = default;
};

// Reads the files. The settings, notes and other lists are those of all of them. Throws like read_deepspeed.
ForeignConfig read_foreign(const ForeignFiles& files);

// Throws ConfigError, as DeepSpeed does, if the train_batch_size of a DeepSpeed file is not the product of
// its train_micro_batch_size_per_gpu, gradient_accumulation_steps and the ranks that train on different
// samples. A size that neither the file nor the recipe has follows from the others. `recipe`: with the
// settings of `foreign`. `ranks`: of the job.
void require_batch_equation(const ForeignConfig& foreign, const Recipe& recipe, int64_t ranks);

// The option of a command for a file of another tool, "--deepspeed", by the keys at its top level; "" for a
// file of another kind.
std::string option_for_file(const std::filesystem::path& file);

// Adds what another file says; its number of ranks and hosts replace those of `all`.
void merge(ForeignConfig& all, const ForeignConfig& one);

// Like load_recipe(), with the settings of `foreign`. An empty `file`: no recipe but these settings and
// `overrides`. Throws ConfigError, with both places, if the recipe or `overrides` set another value.
Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::vector<settings::Field>& program, const ForeignConfig& foreign);

// Throws ConfigError if `recipe`, from `foreign` alone, lacks what `verb` needs; the message names the key of
// the file, if it has one for that.
void require_enough(const Recipe& recipe, const ForeignConfig& foreign, Verb verb);

}  // namespace stretto::compat
