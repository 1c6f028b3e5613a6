#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stretto {

class ModelOutline;

// The configuration of a GPT-2 decoder (Radford et al. 2019), with the names and defaults of Hugging Face's
// config.json.
struct Gpt2Config {
  int64_t vocab_size = 50257;
  int64_t n_positions = 1024;
  int64_t n_embd = 768;
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_inner = 0;  // 0: 4 * n_embd
  std::string activation_function = "gelu_new";
  double resid_pdrop = 0.1;
  double embd_pdrop = 0.1;
  double attn_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  bool scale_attn_weights = true;
  bool scale_attn_by_inverse_layer_idx = false;
  // Computing scores in fp32, which stretto always does.
  bool reorder_and_upcast_attn = false;
  bool tie_word_embeddings = true;

  int64_t inner() const { return n_inner > 0 ? n_inner : 4 * n_embd; }
  // The factor of attention scores in the layer `index`.
  double score_scale(int64_t index) const;

  // Sets all dropout probabilities to `p`.
  void set_dropout(double p);

  // Throws ConfigError with `source` and the key for values out of range and for unsupported variants.
  static Gpt2Config from_json(const nlohmann::json& json, const std::string& source);

  // `original` (the config.json that the model was loaded from, or empty) with the values of this struct.
  nlohmann::json to_json(const nlohmann::json& original) const;

  // The parameters of a model with `head`, see outline.h; nullopt if the family has no such head.
  std::optional<ModelOutline> outline(std::string_view head) const;
};

}  // namespace stretto
