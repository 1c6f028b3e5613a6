#include "stretto/models/gpt2/model.h"

#include <cmath>

#include "stretto/model_config/heads.h"

namespace stretto {
namespace {

DecoderOptions decoder_options(const Gpt2Config& config, const nn::TensorParallel& ranks) {
  DecoderOptions options = {.words = "transformer.wte",
                            .positions = "transformer.wpe",
                            .layers = "transformer.h",
                            .norm = "transformer.ln_f",
                            .vocab_size = config.vocab_size,
                            .max_length = config.n_positions,
                            .number_of_layers = config.n_layer,
                            .tied = config.tie_word_embeddings,
                            .embedding_dropout = config.embd_pdrop,
                            .layer_names = {.attention_norm = "ln_1",
                                            .query = "attn.c_attn",
                                            .output = "attn.c_proj",
                                            .mlp_norm = "ln_2",
                                            .in = "mlp.c_fc",
                                            .out = "mlp.c_proj"},
                            .layer = {.width = config.n_embd,
                                      .inner = config.inner(),
                                      .heads = config.n_head,
                                      .key_heads = config.n_head,
                                      .head_width = config.n_embd / config.n_head,
                                      .norm_eps = config.layer_norm_epsilon,
                                      .transposed = true,
                                      .query_bias = true,
                                      .attention_output_bias = true,
                                      .mlp_bias = true,
                                      .activation = nn::activation(config.activation_function),
                                      .dropout = config.resid_pdrop,
                                      .attention_dropout = config.attn_pdrop,
                                      .ranks = ranks}};
  for (int64_t i = 0; i < config.n_layer; ++i)
    options.rules.push_back({.causal = true, .scale = config.score_scale(i)});
  return options;
}

}  // namespace

Gpt2::Gpt2(const Gpt2Config& config, const nn::TensorParallel& ranks)
    : Decoder(decoder_options(config, ranks)), config_(config) {}

nn::InitialValue Gpt2::initial_value(const nn::LayerParameter& parameter) const {
  double std = config_.initializer_range;
  if (parameter.name.ends_with(".c_proj.weight")) std /= std::sqrt(static_cast<double>(2 * config_.n_layer));
  return nn::InitRule{.std = std}.of(parameter);
}

WeightNames Gpt2::weight_names() const {
  const bool is_tied = config_.tie_word_embeddings;
  return {.head = heads::causal_language_model,
          .prefix = "transformer.",
          .parts = {"wte.", "wpe.", "h.", "ln_f."},
          .is_leftover = [is_tied](const std::string& name) {
            return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
                   (is_tied && name == "lm_head.weight");
          }};
}

std::shared_ptr<TextModel> make_gpt2(const nlohmann::json& config, const std::string& source,
                                     const TextModelOptions& options) {
  Gpt2Config gpt2 = Gpt2Config::from_json(config, source);
  if (options.dropout) gpt2.set_dropout(*options.dropout);
  return std::make_shared<Gpt2>(gpt2, options.tensor_parallel);
}

}  // namespace stretto
