#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stretto/config/recipe.h"
#include "stretto/models/registry.h"
#include "stretto/trainer/module.h"

namespace stretto {

// Fine-tunes a model with a classification head on packed batches with labels.
class SequenceClassification : public Module {
 public:
  // The model that `config` names: the weights of its folder, or random ones from `seed` where there is only a
  // config.json or the folder lacks some (which is logged). `labels` names the classes.
  SequenceClassification(const ModelConfig& config, const std::vector<std::string>& labels, uint64_t seed,
                         const ModelRegistry& models = bundled_models());

  Loss training_step(const Batch& batch, StepContext& context) override;

  // One row per sample: its logits, then its label (-1 without one).
  Tensor validation_step(const Batch& batch, StepContext& context) override;

  // Mean loss and classification metrics; nothing where samples have no labels.
  Metrics metrics(const Tensor& rows) const override;

  // A folder that Hugging Face's from_pretrained loads: config.json, model.safetensors, the tokenizer's files.
  void save(const std::filesystem::path& folder, const NamedTensors& weights) const override;

  nlohmann::json model_config() const override;

  // Saves the tokenizer's files (of a folder, or one file) with the model. `lowercase` is written to
  // tokenizer_config.json where there is none. `pairs`: samples are pairs of texts, which config.json records.
  void ship_tokenizer(const std::filesystem::path& tokenizer, bool lowercase, bool pairs);

  const SequenceClassifier& classifier() const { return *model_; }

 private:
  std::filesystem::path tokenizer_;
  bool lowercase_ = true, pairs_ = false;
  nlohmann::json original_config_;
  std::shared_ptr<SequenceClassifier> model_;
};

}  // namespace stretto
