#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// The configuration of a BERT encoder (Devlin et al. 2019) or of RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al.
// 2020), which number positions from pad_token_id + 1 and have another head, or of ELECTRA (Clark et al. 2020), whose embeddings may be
// narrower than its layers. Names and defaults are those of Hugging Face's config.json.
struct BertConfig {
  std::string model_type = "bert";  // or "roberta", "xlm-roberta", "electra"
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
  bool is_roberta() const { return model_type == "roberta" || model_type == "xlm-roberta"; }
  bool has_pooler() const { return model_type == "bert"; }
  // The encoder's name in weight files: "bert", "roberta" or "electra".
  std::string encoder_name() const { return is_roberta() ? "roberta" : model_type; }
  // What names of architectures begin with: "Bert", "Roberta", "XLMRoberta" or "Electra".
  std::string class_name() const;
  int64_t first_position() const { return is_roberta() ? pad_token_id + 1 : 0; }
  int64_t max_length() const { return max_position_embeddings - first_position(); }  // tokens

  // Sets all dropout probabilities to `p`.
  void set_dropout(double p);

  // Throws ConfigError with `source` and the key for values out of range and for unsupported variants.
  static BertConfig from_json(const nlohmann::json& json, const std::string& source);
  static BertConfig read(const std::filesystem::path& config_json);

  // `original` (the config.json that the model was loaded from, or empty) with the values of this struct and
  // `architecture`.
  nlohmann::json to_json(const nlohmann::json& original, const std::string& architecture) const;
};

}  // namespace stretto
