#include "stretto/model_config/bart.h"

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"

namespace stretto {
namespace {

// Called before tensors are allocated.
void check_size(const BartConfig& config, const std::string& source) {
  const int64_t width = config.d_model;
  check_parameter_count({{config.vocab_size, width}}, source,
                        fmt::format("vocab_size {} x d_model {}", config.vocab_size, width));
  check_parameter_count(
      {{2, config.max_position_embeddings, width}}, source,
      fmt::format("max_position_embeddings {} x d_model {}", config.max_position_embeddings, width));
  check_parameter_count({{4, config.encoder_layers, width, width},
                         {2, config.encoder_layers, width, config.encoder_ffn_dim},
                         {8, config.decoder_layers, width, width},
                         {2, config.decoder_layers, width, config.decoder_ffn_dim}},
                        source,
                        fmt::format("encoder_layers {} and decoder_layers {} of d_model {}",
                                    config.encoder_layers, config.decoder_layers, width));
}

void require_heads_divide(const BartConfig& config, const char* key, int64_t heads,
                          const std::string& source) {
  if (config.d_model % heads != 0)
    throw ConfigError("{}: d_model ({}) must be a multiple of {} ({})", source, config.d_model, key, heads);
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
  field.read("vocab_size", config.vocab_size, 1, max_width);
  field.read("d_model", config.d_model, 1, max_width);
  field.read("encoder_layers", config.encoder_layers, 0, max_layers);
  field.read("encoder_attention_heads", config.encoder_attention_heads, 1, max_width);
  field.read("encoder_ffn_dim", config.encoder_ffn_dim, 1, max_width);
  field.read("decoder_layers", config.decoder_layers, 1, max_layers);
  field.read("decoder_attention_heads", config.decoder_attention_heads, 1, max_width);
  field.read("decoder_ffn_dim", config.decoder_ffn_dim, 1, max_width);
  field.read("max_position_embeddings", config.max_position_embeddings, 1, max_width);
  field.read("pad_token_id", config.pad_token_id, 0, max_width);
  field.read("eos_token_id", config.eos_token_id, 0, config.vocab_size - 1);
  field.read("decoder_start_token_id", config.decoder_start_token_id, 0, config.vocab_size - 1);
  field.read("activation_function", config.activation_function);
  field.read("init_std", config.init_std, 0, 100);
  field.read("dropout", config.dropout, 0, 1);
  field.read("attention_dropout", config.attention_dropout, 0, 1);
  field.read("activation_dropout", config.activation_dropout, 0, 1);
  // Files written before it was renamed.
  field.read("classif_dropout", config.classifier_dropout, 0, 1);
  field.read("classifier_dropout", config.classifier_dropout, 0, 1);
  require_heads_divide(config, "encoder_attention_heads", config.encoder_attention_heads, source);
  require_heads_divide(config, "decoder_attention_heads", config.decoder_attention_heads, source);
  check_size(config, source);
  config.labels = read_labels(json, source, /*default_count=*/3);
  return config;
}

nlohmann::json BartConfig::to_json(const nlohmann::json& original, const std::string& architecture) const {
  nlohmann::json json = begin_config_json(original, "bart", architecture);
  json["vocab_size"] = vocab_size;
  json["d_model"] = d_model;
  json["encoder_layers"] = encoder_layers;
  json["encoder_attention_heads"] = encoder_attention_heads;
  json["encoder_ffn_dim"] = encoder_ffn_dim;
  json["decoder_layers"] = decoder_layers;
  json["decoder_attention_heads"] = decoder_attention_heads;
  json["decoder_ffn_dim"] = decoder_ffn_dim;
  json["max_position_embeddings"] = max_position_embeddings;
  json["pad_token_id"] = pad_token_id;
  json["eos_token_id"] = eos_token_id;
  json["decoder_start_token_id"] = decoder_start_token_id;
  json["activation_function"] = activation_function;
  json["init_std"] = init_std;
  json["dropout"] = dropout;
  json["attention_dropout"] = attention_dropout;
  json["activation_dropout"] = activation_dropout;
  json["classifier_dropout"] = classifier_dropout;
  write_labels(json, labels);
  return json;
}

}  // namespace stretto
