#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "stretto/nn/packed.h"
#include "stretto/tensor/hf_folder.h"

namespace stretto {

// What a task asks of a model besides its config.json.
struct ClassifierOptions {
  std::optional<std::vector<std::string>> labels = {};  // unset: those of config.json
  std::optional<double> dropout = {};  // every dropout of the model; unset: those of config.json
};

// A model with a head that classifies whole texts, of whatever architecture (Hugging Face: ...ForSequenceClassification).
class SequenceClassifier : public torch::nn::Module {
 public:
  // A packed batch -> logits [B, labels]. The tensors that a batch of texts holds: tensor/batch.h.
  virtual Tensor forward(const Batch& batch, const nn::Context& context) const = 0;

  // Random weights for the parameters `names`, each a function of the seed and its name alone.
  virtual void initialize(uint64_t seed, const std::vector<std::string>& names) = 0;

  // Weights of a Hugging Face folder, older names included; what the folder lacks is left as it is and reported.
  virtual WeightReport load_weights(const std::filesystem::path& folder) = 0;

  // `original` (the config.json that the model was made from) with this model's values.
  virtual nlohmann::json config_json(const nlohmann::json& original) const = 0;

  virtual const std::vector<std::string>& labels() const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_length() const = 0;  // tokens of a text
};

}  // namespace stretto
