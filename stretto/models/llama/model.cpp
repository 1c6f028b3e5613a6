#include "stretto/models/llama/model.h"

#include "stretto/model_config/heads.h"

namespace stretto {
namespace {

DecoderOptions decoder_options(const LlamaConfig& config, const nn::TensorParallel& ranks) {
  DecoderOptions options = {.words = "model.embed_tokens",
                            .positions = "",
                            .layers = "model.layers",
                            .norm = "model.norm",
                            .vocab_size = config.vocab_size,
                            .max_length = config.max_position_embeddings,
                            .number_of_layers = config.num_hidden_layers,
                            .tied = config.tie_word_embeddings,
                            .padding_row = config.padding_row(),
                            .layer_names = {.attention_norm = "input_layernorm",
                                            .query = "self_attn.q_proj",
                                            .key = "self_attn.k_proj",
                                            .value = "self_attn.v_proj",
                                            .output = "self_attn.o_proj",
                                            .mlp_norm = "post_attention_layernorm",
                                            .in = "mlp.gate_proj",
                                            .factor = "mlp.up_proj",
                                            .out = "mlp.down_proj"},
                            .layer = {.width = config.hidden_size,
                                      .inner = config.intermediate_size,
                                      .heads = config.num_attention_heads,
                                      .key_heads = config.num_key_value_heads,
                                      .head_width = config.head_dim,
                                      .rms_norm = true,
                                      .norm_eps = config.rms_norm_eps,
                                      .query_bias = config.query_bias(),
                                      .attention_output_bias = config.attention_bias,
                                      .mlp_bias = config.mlp_bias,
                                      .activation = nn::activation(config.hidden_act),
                                      .attention_dropout = config.attention_dropout,
                                      .ranks = ranks}};
  if (config.variant().head_norms) {
    options.layer_names.query_norm = "self_attn.q_norm";
    options.layer_names.key_norm = "self_attn.k_norm";
  }
  if (config.rope.type == RopeType::longrope)
    options.steady_length = config.rope.original_max_position_embeddings;
  if (config.rope.type == RopeType::dynamic) {
    options.steady_length = config.rope.max_position_embeddings;
    options.writes_on = true;
  }
  for (const int64_t window : config.windows) options.rules.push_back({.causal = true, .window = window});
  return options;
}

}  // namespace

Llama::Llama(const LlamaConfig& config, const nn::TensorParallel& ranks)
    : Decoder(decoder_options(config, ranks)),
      config_(config),
      rope_(config.rope, config.rope.width(config.head_dim)) {}

nn::InitialValue Llama::initial_value(const nn::LayerParameter& parameter) const {
  const nn::InitRule rule = {.std = config_.initializer_range,
                             .table = "model.embed_tokens.weight",
                             .padding_row = config_.padding_row()};
  return rule.of(parameter);
}

WeightNames Llama::weight_names() const {
  const bool is_tied = config_.tie_word_embeddings;
  return {.head = heads::causal_language_model,
          .prefix = "model.",
          .parts = {"embed_tokens.", "layers.", "norm."},
          .is_leftover = [is_tied](const std::string& name) {
            return name.ends_with(".self_attn.rotary_emb.inv_freq") || (is_tied && name == "lm_head.weight");
          }};
}

std::shared_ptr<TextModel> make_llama(const nlohmann::json& config, const std::string& source,
                                      const TextModelOptions& options) {
  LlamaConfig llama = LlamaConfig::from_json(config, source);
  if (options.dropout) llama.set_dropout(*options.dropout);
  return std::make_shared<Llama>(llama, options.tensor_parallel);
}

}  // namespace stretto
