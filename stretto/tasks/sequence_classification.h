#pragma once

#include <filesystem>
#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/data/rows.h"
#include "stretto/models/bert/model.h"
#include "stretto/trainer/module.h"

namespace stretto {

// Fine-tunes a BERT with a classification head on packed batches with labels.
class SequenceClassification : public Module {
 public:
  // The model that `config` names: the weights of its folder, or random ones from `seed` where there is only a
  // config.json or the folder lacks some (which is logged). `labels` names the classes.
  SequenceClassification(const ModelConfig& config, const data::LabelSet& labels, uint64_t seed);

  Loss training_step(const Batch& batch, StepContext& context) override;

  // One row a sample: its logits, then its label (-1 without one).
  Tensor validation_step(const Batch& batch, StepContext& context) override;

  // Mean loss and classification metrics; nothing where samples have no labels.
  Metrics metrics(const Tensor& rows) const override;

  // A folder that Hugging Face's from_pretrained loads: config.json, model.safetensors, the shipped tokenizer.
  void save(const std::filesystem::path& folder, const NamedTensors& weights) const override;

  nlohmann::json model_config() const override;

  // Puts the tokenizer's files (of a folder, or one file) beside the weights when the model is saved. `lowercase` goes
  // into tokenizer_config.json where the files leave it open.
  void ship_tokenizer(const std::filesystem::path& tokenizer, bool lowercase);

  const BertConfig& config() const { return model_->config(); }

 private:
  std::filesystem::path tokenizer_;
  bool lowercase_ = true;
  nlohmann::json original_config_;
  std::shared_ptr<BertForSequenceClassification> model_;
};

// The classes that a folder's classification head was trained for; nothing where it has no head.
std::optional<data::LabelSet> trained_labels(const ModelConfig& config);

}  // namespace stretto
