#include "stretto/model_config/distilbert.h"

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"

namespace stretto {

void DistilBertConfig::set_dropout(double p) {
  dropout = attention_dropout = seq_classif_dropout = qa_dropout = p;
}

DistilBertConfig DistilBertConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  field.require("model_type", "distilbert");
  DistilBertConfig config;
  field.read("vocab_size", config.vocab_size, 1, max_width);
  field.read("max_position_embeddings", config.max_position_embeddings, 1, max_width);
  field.read("n_layers", config.n_layers, 0, max_layers);
  field.read("n_heads", config.n_heads, 1, max_width);
  field.read("dim", config.dim, 1, max_width);
  field.read("hidden_dim", config.hidden_dim, 1, max_width);
  field.read("pad_token_id", config.pad_token_id, 0, max_width);
  field.read("activation", config.activation);
  field.read("initializer_range", config.initializer_range, 0, 100);
  field.read("dropout", config.dropout, 0, 1);
  field.read("attention_dropout", config.attention_dropout, 0, 1);
  field.read("seq_classif_dropout", config.seq_classif_dropout, 0, 1);
  field.read("qa_dropout", config.qa_dropout, 0, 1);
  if (config.dim % config.n_heads != 0)
    throw ConfigError("{}: dim ({}) must be a multiple of n_heads ({})", source, config.dim, config.n_heads);
  check_parameter_count({{config.vocab_size, config.dim}}, source,
                        fmt::format("vocab_size {} x dim {}", config.vocab_size, config.dim));
  check_parameter_count(
      {{config.max_position_embeddings, config.dim}}, source,
      fmt::format("max_position_embeddings {} x dim {}", config.max_position_embeddings, config.dim));
  check_parameter_count(
      {{4, config.n_layers, config.dim, config.dim}, {2, config.n_layers, config.dim, config.hidden_dim}},
      source,
      fmt::format("n_layers {} x dim {} x hidden_dim {}", config.n_layers, config.dim, config.hidden_dim));
  config.labels = read_labels(json, source);
  return config;
}

nlohmann::json DistilBertConfig::to_json(const nlohmann::json& original,
                                         const std::string& architecture) const {
  nlohmann::json json = begin_config_json(original, "distilbert", architecture);
  json["vocab_size"] = vocab_size;
  json["max_position_embeddings"] = max_position_embeddings;
  json["n_layers"] = n_layers;
  json["n_heads"] = n_heads;
  json["dim"] = dim;
  json["hidden_dim"] = hidden_dim;
  json["pad_token_id"] = pad_token_id;
  json["activation"] = activation;
  json["initializer_range"] = initializer_range;
  json["dropout"] = dropout;
  json["attention_dropout"] = attention_dropout;
  json["seq_classif_dropout"] = seq_classif_dropout;
  json["qa_dropout"] = qa_dropout;
  write_labels(json, labels, architecture.ends_with("ForSequenceClassification"));
  return json;
}

}  // namespace stretto
