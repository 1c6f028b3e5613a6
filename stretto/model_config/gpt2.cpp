#include "stretto/model_config/gpt2.h"

#include <cmath>

#include "stretto/model_config/activations.h"
#include "stretto/model_config/config_fields.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/known_keys.h"
#include "stretto/model_config/outline.h"
#include "stretto/model_config/transformer_sizes.h"

namespace stretto {
namespace {

const std::vector<ConfigField<Gpt2Config>>& gpt2_fields() {
  using Config = Gpt2Config;
  static const std::vector<ConfigField<Config>> table = {
      {"vocab_size", &Config::vocab_size, 1, max_width},
      {"n_positions", &Config::n_positions, 1, max_width},
      {"n_embd", &Config::n_embd, 1, max_width},
      {"n_layer", &Config::n_layer, 0, max_layers},
      {"n_head", &Config::n_head, 1, max_width},
      {"activation_function", &Config::activation_function, activation_names},
      {"resid_pdrop", &Config::resid_pdrop},
      {"embd_pdrop", &Config::embd_pdrop},
      {"attn_pdrop", &Config::attn_pdrop},
      {"layer_norm_epsilon", &Config::layer_norm_epsilon},
      {"initializer_range", &Config::initializer_range, 100},
      {"scale_attn_weights", &Config::scale_attn_weights},
      {"scale_attn_by_inverse_layer_idx", &Config::scale_attn_by_inverse_layer_idx},
      {"reorder_and_upcast_attn", &Config::reorder_and_upcast_attn},
      {"tie_word_embeddings", &Config::tie_word_embeddings}};
  return table;
}

// A null in config.json means the default, which is not a number.
const ConfigField<Gpt2Config> inner_field = {"n_inner", &Gpt2Config::n_inner, 1, max_width};

// Alternative names that transformers also reads.
const std::vector<ConfigField<Gpt2Config>>& gpt2_aliases() {
  using Config = Gpt2Config;
  static const std::vector<ConfigField<Config>> table = {
      {"max_position_embeddings", &Config::n_positions, 1, max_width},
      {"hidden_size", &Config::n_embd, 1, max_width},
      {"num_hidden_layers", &Config::n_layer, 0, max_layers},
      {"num_attention_heads", &Config::n_head, 1, max_width}};
  return table;
}

// The keys that from_json reads, those of a classification head, and a former name of n_positions.
KnownKeys known_keys() {
  return {.all = keys_of(gpt2_fields(),
                         keys_of(gpt2_aliases(), {"n_inner", "n_ctx", "add_cross_attention", "summary_type",
                                                  "summary_use_proj", "summary_activation",
                                                  "summary_proj_to_labels", "summary_first_dropout"})),
          .nullable = {"n_inner", "n_ctx", "summary_activation"}};
}

}  // namespace

double Gpt2Config::score_scale(int64_t index) const {
  const int64_t head_width = n_embd / n_head;
  const double scale = scale_attn_weights ? 1 / std::sqrt(static_cast<double>(head_width)) : 1;
  return scale_attn_by_inverse_layer_idx ? scale / static_cast<double>(index + 1) : scale;
}

void Gpt2Config::set_dropout(double p) { resid_pdrop = embd_pdrop = attn_pdrop = p; }

Gpt2Config Gpt2Config::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  field.require("model_type", "gpt2");
  field.require("add_cross_attention", false);
  field.require("quantization_config", nullptr);
  Gpt2Config config;
  check_keys(json, source, "gpt2", known_keys());
  read_fields(gpt2_aliases(), field, config);
  read_fields(gpt2_fields(), field, config);
  inner_field.read(field, config);
  const NamedSize width = {"n_embd", config.n_embd};
  check_transformer_sizes(
      source, width,
      {{{"vocab_size", config.vocab_size}, width}, {{"n_positions", config.n_positions}, width}},
      {{.layers = {"n_layer", config.n_layer},
        .heads = {"n_head", config.n_head},
        .inner = {"n_inner", config.inner()}}});
  return config;
}

nlohmann::json Gpt2Config::to_json(const nlohmann::json& original) const {
  nlohmann::json json = begin_config_json(original, "gpt2", "GPT2LMHeadModel");
  write_fields(gpt2_fields(), *this, json);
  if (n_inner > 0) inner_field.write(*this, json);
  return json;
}

std::optional<ModelOutline> Gpt2Config::outline(std::string_view head) const {
  if (head != heads::causal_language_model) return std::nullopt;
  ModelOutline outline;
  outline.heads = outline.key_heads = n_head;
  // Conv1D: the weight is [in, out].
  const auto map = [&](const std::string& name, int64_t in, int64_t out) {
    outline.add(name + ".weight", {in, out}, in * out);
    outline.add(name + ".bias", {out});
  };
  const int64_t of_head = vocab_size * n_embd;
  outline.table("transformer.wte", vocab_size, n_embd, tie_word_embeddings ? of_head : 0);
  outline.table("transformer.wpe", n_positions, n_embd);
  for (int64_t i = 0; i < n_layer; ++i) {
    const std::string layer = fmt::format("transformer.h.{}", i);
    outline.begin_block(layer);
    outline.norm(layer + ".ln_1", n_embd);
    map(layer + ".attn.c_attn", n_embd, 3 * n_embd);
    map(layer + ".attn.c_proj", n_embd, n_embd);
    outline.norm(layer + ".ln_2", n_embd);
    map(layer + ".mlp.c_fc", n_embd, inner());
    map(layer + ".mlp.c_proj", inner(), n_embd);
  }
  outline.begin_block("");
  outline.norm("transformer.ln_f", n_embd);
  if (!tie_word_embeddings) outline.add("lm_head.weight", {vocab_size, n_embd}, of_head);
  return outline;
}

}  // namespace stretto
