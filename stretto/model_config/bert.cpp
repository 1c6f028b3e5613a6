#include "stretto/model_config/bert.h"

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"

namespace stretto {
namespace {

// Called before tensors are allocated.
void check_size(const BertConfig& config, const std::string& source) {
  const int64_t hidden = config.hidden_size;
  const char* const width = config.embedding_size == hidden ? "hidden_size" : "embedding_size";
  check_parameter_count(
      {{config.vocab_size + hidden, config.embedding_size}}, source,
      fmt::format("vocab_size {} x {} {}", config.vocab_size, width, config.embedding_size));
  check_parameter_count(
      {{config.max_position_embeddings, hidden}, {config.type_vocab_size, hidden}}, source,
      fmt::format("max_position_embeddings {} x hidden_size {}", config.max_position_embeddings, hidden));
  check_parameter_count({{4, config.num_hidden_layers, hidden, hidden},
                         {2, config.num_hidden_layers, hidden, config.intermediate_size}},
                        source,
                        fmt::format("num_hidden_layers {} x hidden_size {} x intermediate_size {}",
                                    config.num_hidden_layers, hidden, config.intermediate_size));
}

}  // namespace

void BertConfig::set_dropout(double p) {
  hidden_dropout_prob = attention_probs_dropout_prob = classifier_dropout = p;
}

std::string BertConfig::class_name() const {
  if (model_type == "electra") return "Electra";
  if (!is_roberta()) return "Bert";
  return model_type == "roberta" ? "Roberta" : "XLMRoberta";
}

BertConfig BertConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  BertConfig config;
  field.read("model_type", config.model_type);
  const bool is_electra = config.model_type == "electra";
  if (!config.is_roberta() && !is_electra) field.require("model_type", "bert");
  if (config.is_roberta()) {
    config.vocab_size = 50265;
    config.pad_token_id = 1;
  }
  if (is_electra) {
    config.hidden_size = 256;
    config.num_attention_heads = 4;
    config.intermediate_size = 1024;
  }
  field.require("position_embedding_type", "absolute");
  field.require("is_decoder", false);
  field.require("add_cross_attention", false);
  field.read("vocab_size", config.vocab_size, 1, max_width);
  field.read("hidden_size", config.hidden_size, 1, max_width);
  config.embedding_size = is_electra ? 128 : config.hidden_size;
  if (is_electra) field.read("embedding_size", config.embedding_size, 1, max_width);
  field.read("num_hidden_layers", config.num_hidden_layers, 0, max_layers);
  field.read("num_attention_heads", config.num_attention_heads, 1, max_width);
  field.read("intermediate_size", config.intermediate_size, 1, max_width);
  field.read("max_position_embeddings", config.max_position_embeddings, 1, max_width);
  field.read("type_vocab_size", config.type_vocab_size, 1, max_width);
  field.read("pad_token_id", config.pad_token_id, 0, max_width);
  field.read("hidden_act", config.hidden_act);
  field.read("layer_norm_eps", config.layer_norm_eps, 0, 1);
  field.read("initializer_range", config.initializer_range, 0, 100);
  field.read("hidden_dropout_prob", config.hidden_dropout_prob, 0, 1);
  field.read("attention_probs_dropout_prob", config.attention_probs_dropout_prob, 0, 1);
  config.classifier_dropout = config.hidden_dropout_prob;
  field.read("classifier_dropout", config.classifier_dropout, 0, 1);
  if (config.max_length() < 1) {
    throw ConfigError(
        "{}: max_position_embeddings ({}) must exceed pad_token_id + 1 ({}), the first position", source,
        config.max_position_embeddings, config.first_position());
  }
  if (config.hidden_size % config.num_attention_heads != 0) {
    throw ConfigError("{}: hidden_size ({}) must be a multiple of num_attention_heads ({})", source,
                      config.hidden_size, config.num_attention_heads);
  }
  check_size(config, source);
  config.labels = read_labels(json, source);
  return config;
}

BertConfig BertConfig::read(const std::filesystem::path& config_json) {
  return from_json(read_config_json(config_json), config_json.string());
}

nlohmann::json BertConfig::to_json(const nlohmann::json& original, const std::string& architecture) const {
  nlohmann::json json = begin_config_json(original, model_type, architecture);
  json["vocab_size"] = vocab_size;
  json["hidden_size"] = hidden_size;
  if (model_type == "electra") json["embedding_size"] = embedding_size;
  json["num_hidden_layers"] = num_hidden_layers;
  json["num_attention_heads"] = num_attention_heads;
  json["intermediate_size"] = intermediate_size;
  json["max_position_embeddings"] = max_position_embeddings;
  json["type_vocab_size"] = type_vocab_size;
  json["pad_token_id"] = pad_token_id;
  json["hidden_act"] = hidden_act;
  json["layer_norm_eps"] = layer_norm_eps;
  json["initializer_range"] = initializer_range;
  json["hidden_dropout_prob"] = hidden_dropout_prob;
  json["attention_probs_dropout_prob"] = attention_probs_dropout_prob;
  json["classifier_dropout"] = classifier_dropout;
  write_labels(json, labels, architecture.ends_with("ForSequenceClassification"));
  return json;
}

}  // namespace stretto
