#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

class ModelOutline;

// The differences from BERT of a family that has another model_type.
struct BertVariant {
  const char* model_type;
  const char* class_name;    // the prefix of architectures: "BertFor..."
  const char* encoder_name;  // the encoder in weight files: "bert."
  // If set, sequence classification reads the pooled state of the first token; otherwise the state of the
  // first token after a layer of the head with this activation.
  bool has_pooler = false;
  const char* head_activation = "tanh";
  bool positions_follow_padding = false;  // positions are numbered from pad_token_id + 1, else from 0
  // the default of the key embedding_size of config.json; 0: there is no such key, and it equals hidden_size
  int64_t embedding_size = 0;
  // Defaults of config.json.
  int64_t vocab_size = 30522, pad_token_id = 0;
  int64_t hidden_size = 768, num_attention_heads = 12, intermediate_size = 3072;
};

// BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), XLM-RoBERTa (Conneau et al. 2020) and ELECTRA (Clark
// et al. 2020).
std::span<const BertVariant> bert_variants();

// The configuration of a BERT encoder or of a variant. Names and defaults are those of Hugging Face's
// config.json.
struct BertConfig {
  std::string model_type = "bert";  // of a variant
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t embedding_size = 768;  // hidden_size, except of ELECTRA
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  int64_t pad_token_id = 0;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = 0.1;  // default: hidden_dropout_prob
  std::vector<std::string> labels;  // id2label; one output of the classification head per label

  int64_t num_labels() const { return std::ssize(labels); }
  // Throws ConfigError if no variant has this model_type.
  const BertVariant& variant() const;
  int64_t first_position() const { return variant().positions_follow_padding ? pad_token_id + 1 : 0; }
  int64_t max_length() const { return max_position_embeddings - first_position(); }  // tokens

  // Sets all dropout probabilities to `p`.
  void set_dropout(double p);

  // Throws ConfigError with `source` and the key for values out of range and for unsupported variants.
  static BertConfig from_json(const nlohmann::json& json, const std::string& source);
  static BertConfig read(const std::filesystem::path& config_json);

  // `original` (the config.json that the model was loaded from, or empty) with the values of this struct and
  // `architecture`.
  nlohmann::json to_json(const nlohmann::json& original, const std::string& architecture) const;

  // The parameters of a model with `head`, see outline.h; nullopt if the family has no such head.
  std::optional<ModelOutline> outline(std::string_view head) const;
};

}  // namespace stretto
