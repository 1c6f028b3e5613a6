#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/models/registry.h"
#include "stretto/trainer/api/module.h"

namespace stretto {

// A Module that fine-tunes a bundled or added model with a head, from and into Hugging Face model folders.
// Derived classes define the steps and metrics.
class ModelModule : public Module {
 public:
  // Writes a folder for Hugging Face's from_pretrained: config.json, model.safetensors, the tokenizer's
  // files.
  void save(const std::filesystem::path& folder, const ListedSource& weights) const override;

  // Writes the tokenizer's files.
  void save_companions(const std::filesystem::path& folder) const override;

  nlohmann::json exported_config() const override;
  nlohmann::json model_config() const override;

  // Makes save() and checkpoints copy the tokenizer's files (a folder, or one file), with
  // text::copy_tokenizer's settings.
  void ship_tokenizer(const std::filesystem::path& tokenizer, bool lowercase,
                      std::optional<bool> add_prefix_space);

  const TextModel& net() const { return *model_; }

 protected:
  // Creates the model of `config` and maps the weights in its folder. Weights that the folder lacks, or all
  // if there is only a config.json, are initialised from `seed`, which is logged. `labels`: names of the
  // classes. `ranks`: those among which the model is divided.
  ModelModule(const ModelConfig& config, const std::string& head, const std::vector<std::string>& labels,
              uint64_t seed, const ModelRegistry& models, const nn::TensorParallel& ranks = {});

 private:
  std::filesystem::path tokenizer_;
  bool lowercase_ = true;
  std::optional<bool> add_prefix_space_;
  nlohmann::json original_config_;
  std::shared_ptr<TextModel> model_;
};

}  // namespace stretto
