#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

class ModelOutline;

// The configuration of a BART encoder-decoder (Lewis et al. 2020), with the names and defaults of Hugging
// Face's config.json.
struct BartConfig {
  int64_t vocab_size = 50265;
  int64_t d_model = 1024;
  int64_t encoder_layers = 12;
  int64_t encoder_attention_heads = 16;
  int64_t encoder_ffn_dim = 4096;
  int64_t decoder_layers = 12;
  int64_t decoder_attention_heads = 16;
  int64_t decoder_ffn_dim = 4096;
  int64_t max_position_embeddings = 1024;
  int64_t pad_token_id = 1;
  int64_t eos_token_id = 2;
  int64_t decoder_start_token_id = 2;
  std::string activation_function = "gelu";
  double init_std = 0.02;
  double dropout = 0.1;
  double attention_dropout = 0;
  double activation_dropout = 0;
  double classifier_dropout = 0;
  std::vector<std::string> labels;  // id2label; one output of the classification head per label

  // Rows of the position tables that are not used.
  static constexpr int64_t unused_positions = 2;

  int64_t num_labels() const { return std::ssize(labels); }

  // Sets all dropout probabilities to `p`.
  void set_dropout(double p);

  // Throws ConfigError with `source` and the key for values out of range and for unsupported variants.
  static BartConfig from_json(const nlohmann::json& json, const std::string& source);

  // `original` (the config.json that the model was loaded from, or empty) with the values of this struct and
  // `architecture`.
  nlohmann::json to_json(const nlohmann::json& original, const std::string& architecture) const;

  // The parameters of a model with `head`, see outline.h; nullopt if the family has no such head.
  std::optional<ModelOutline> outline(std::string_view head) const;
};

}  // namespace stretto
