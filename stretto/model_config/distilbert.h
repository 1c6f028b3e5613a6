#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

class ModelOutline;

// The configuration of a DistilBERT encoder (Sanh et al. 2019), with the names and defaults of Hugging Face's
// config.json.
struct DistilBertConfig {
  int64_t vocab_size = 30522;
  int64_t max_position_embeddings = 512;
  int64_t n_layers = 6;
  int64_t n_heads = 12;
  int64_t dim = 768;
  int64_t hidden_dim = 3072;
  int64_t pad_token_id = 0;
  std::string activation = "gelu";
  double initializer_range = 0.02;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double seq_classif_dropout = 0.2;
  double qa_dropout = 0.1;
  std::vector<std::string> labels;  // id2label; one output of a classification head per label

  int64_t num_labels() const { return std::ssize(labels); }

  // Sets all dropout probabilities to `p`.
  void set_dropout(double p);

  // Throws ConfigError with `source` and the key for values out of range.
  static DistilBertConfig from_json(const nlohmann::json& json, const std::string& source);

  // `original` (the config.json that the model was loaded from, or empty) with the values of this struct and
  // `architecture`.
  nlohmann::json to_json(const nlohmann::json& original, const std::string& architecture) const;

  // The parameters of a model with `head`, see outline.h; nullopt if the family has no such head.
  std::optional<ModelOutline> outline(std::string_view head) const;
};

}  // namespace stretto
