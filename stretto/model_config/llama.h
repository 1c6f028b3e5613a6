#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/model_config/rope.h"

namespace stretto {

class ModelOutline;

// The differences from Llama of a family that has another model_type.
struct LlamaVariant {
  const char* model_type;
  const char* class_name;            // the prefix of the architecture: "LlamaForCausalLM"
  bool query_bias = false;           // of queries, keys and values, regardless of config.json
  bool reads_attention_bias = true;  // attention_bias of config.json: of these and of the output
  bool reads_mlp_bias = false;       // mlp_bias
  bool head_norms = false;           // queries and keys are normalised head by head
  enum class Window {
    none,
    all_layers,
    some_layers
  } window = Window::none;  // the meaning of sliding_window in config.json
  // Defaults of config.json.
  int64_t vocab_size = 32000, intermediate_size = 11008, max_position_embeddings = 2048;
  int64_t num_key_value_heads = 0;  // 0: as num_attention_heads
  int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
};

// Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al.
// 2025).
std::span<const LlamaVariant> llama_variants();

// The configuration of a Llama decoder or of a variant, with the names and defaults of Hugging Face's
// config.json.
struct LlamaConfig {
  std::string model_type = "llama";  // of a variant
  int64_t vocab_size = 32000;
  int64_t hidden_size = 4096;
  int64_t intermediate_size = 11008;
  int64_t num_hidden_layers = 32;
  int64_t num_attention_heads = 32;
  int64_t num_key_value_heads = 32;
  int64_t head_dim = 128;
  std::string hidden_act = "silu";
  int64_t max_position_embeddings = 2048;
  double initializer_range = 0.02;
  double rms_norm_eps = 1e-6;
  double attention_dropout = 0;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool tie_word_embeddings = false;
  // its row of the word embedding table is not trained; -1: the last row
  std::optional<int64_t> pad_token_id = {};
  RopeParameters rope = {};
  // per layer, the number of tokens that a token attends to; 0: all earlier ones
  std::vector<int64_t> windows = {};

  // Throws ConfigError if no variant has this model_type.
  const LlamaVariant& variant() const;
  bool query_bias() const { return variant().query_bias || attention_bias; }
  int64_t padding_row() const;  // -1 if there is none

  void set_dropout(double p) { attention_dropout = p; }

  // Throws ConfigError with `source` and the key for values out of range and for unsupported variants.
  static LlamaConfig from_json(const nlohmann::json& json, const std::string& source);

  // `original` (the config.json that the model was loaded from, or empty) with the values of this struct.
  nlohmann::json to_json(const nlohmann::json& original) const;

  // The parameters of a model with `head`, see outline.h; nullopt if the family has no such head.
  std::optional<ModelOutline> outline(std::string_view head) const;
};

}  // namespace stretto
