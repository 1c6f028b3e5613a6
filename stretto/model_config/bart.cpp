#include "stretto/model_config/bart.h"

#include <numeric>

#include <fmt/format.h>

#include "stretto/model_config/activations.h"
#include "stretto/model_config/config_fields.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/outline.h"
#include "stretto/model_config/transformer_sizes.h"

namespace stretto {
namespace {

const std::vector<ConfigField<BartConfig>>& bart_fields() {
  using Config = BartConfig;
  static const std::vector<ConfigField<Config>> table = {
      {"vocab_size", &Config::vocab_size, 1, max_width},
      {"d_model", &Config::d_model, 1, max_width},
      {"encoder_layers", &Config::encoder_layers, 0, max_layers},
      {"encoder_attention_heads", &Config::encoder_attention_heads, 1, max_width},
      {"encoder_ffn_dim", &Config::encoder_ffn_dim, 1, max_width},
      {"decoder_layers", &Config::decoder_layers, 1, max_layers},
      {"decoder_attention_heads", &Config::decoder_attention_heads, 1, max_width},
      {"decoder_ffn_dim", &Config::decoder_ffn_dim, 1, max_width},
      {"max_position_embeddings", &Config::max_position_embeddings, 1, max_width},
      {"pad_token_id", &Config::pad_token_id, 0, max_width},
      {"eos_token_id", &Config::eos_token_id, &Config::vocab_size},
      {"decoder_start_token_id", &Config::decoder_start_token_id, &Config::vocab_size},
      {"activation_function", &Config::activation_function, activation_names},
      {"init_std", &Config::init_std, 100},
      {"dropout", &Config::dropout},
      {"attention_dropout", &Config::attention_dropout},
      {"activation_dropout", &Config::activation_dropout},
      {"classifier_dropout", &Config::classifier_dropout}};
  return table;
}

void check_sizes(const BartConfig& config, const std::string& source) {
  const NamedSize width = {"d_model", config.d_model};
  check_transformer_sizes(source, width,
                          {{{"vocab_size", config.vocab_size}, width},
                           {{"max_position_embeddings", config.max_position_embeddings}, width},
                           {width, width}},
                          {{.layers = {"encoder_layers", config.encoder_layers},
                            .heads = {"encoder_attention_heads", config.encoder_attention_heads},
                            .inner = {"encoder_ffn_dim", config.encoder_ffn_dim}},
                           {.layers = {"decoder_layers", config.decoder_layers},
                            .heads = {"decoder_attention_heads", config.decoder_attention_heads},
                            .inner = {"decoder_ffn_dim", config.decoder_ffn_dim},
                            .square_maps = 8}});
}

}  // namespace

void BartConfig::set_dropout(double p) {
  dropout = attention_dropout = activation_dropout = classifier_dropout = p;
}

BartConfig BartConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  field.require("model_type", "bart");
  field.require("scale_embedding", false);
  field.require("encoder_layerdrop", 0.0);
  field.require("decoder_layerdrop", 0.0);
  field.require("normalize_before", false);
  field.require("normalize_embedding", true);
  field.require("add_final_layer_norm", false);
  field.require("static_position_embeddings", false);
  field.require("extra_pos_embeddings", 2);
  field.require("tie_word_embeddings", true);
  BartConfig config;
  field.read("classif_dropout", config.classifier_dropout, 0, 1);  // in files written before it was renamed
  read_fields(bart_fields(), field, config);
  check_sizes(config, source);
  config.labels = read_labels(json, source, /*default_count=*/3);
  return config;
}

nlohmann::json BartConfig::to_json(const nlohmann::json& original, const std::string& architecture) const {
  nlohmann::json json = begin_config_json(original, "bart", architecture);
  write_fields(bart_fields(), *this, json);
  write_labels(json, labels);
  return json;
}

std::optional<ModelOutline> BartConfig::outline(std::string_view head) const {
  if (head != heads::sequence_classification) return std::nullopt;
  ModelOutline outline;
  outline.heads = outline.key_heads = std::gcd(encoder_attention_heads, decoder_attention_heads);
  const auto attention = [&](const std::string& name) {
    for (const char* product : {".q_proj", ".k_proj", ".v_proj", ".out_proj"})
      outline.linear(name + product, d_model, d_model);
    outline.norm(name + "_layer_norm", d_model);
  };
  const auto stack = [&](const std::string& name, int64_t layers, int64_t inner, bool reads_encoder) {
    outline.begin_block("");
    outline.table(name + ".embed_positions", max_position_embeddings + unused_positions, d_model);
    outline.norm(name + ".layernorm_embedding", d_model);
    for (int64_t i = 0; i < layers; ++i) {
      const std::string layer = fmt::format("{}.layers.{}", name, i);
      outline.begin_block(layer);
      attention(layer + ".self_attn");
      if (reads_encoder) attention(layer + ".encoder_attn");
      outline.linear(layer + ".fc1", d_model, inner);
      outline.linear(layer + ".fc2", inner, d_model);
      outline.norm(layer + ".final_layer_norm", d_model);
    }
  };
  const std::string root = "model";
  outline.table(root + ".shared", vocab_size, d_model);
  stack(root + ".encoder", encoder_layers, encoder_ffn_dim, /*reads_encoder=*/false);
  stack(root + ".decoder", decoder_layers, decoder_ffn_dim, /*reads_encoder=*/true);
  outline.begin_block("");
  outline.linear("classification_head.dense", d_model, d_model);
  outline.linear("classification_head.out_proj", d_model, num_labels());
  return outline;
}

}  // namespace stretto
