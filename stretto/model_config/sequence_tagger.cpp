#include "stretto/model_config/sequence_tagger.h"

#include <algorithm>
#include <set>

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"

namespace stretto {

int64_t SequenceTaggerConfig::character_count() const {
  return 1 + std::ranges::count_if(characters, [](char c) { return (c & 0xC0) != 0x80; });
}

int64_t SequenceTaggerConfig::embedding_size() const {
  return word_dimensions + (characters.empty() ? 0 : 2 * character_hidden_size);
}

SequenceTaggerConfig SequenceTaggerConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  field.require("model_type", model_type);
  SequenceTaggerConfig config;
  if (const auto found = json.find("transformer"); found != json.end() && !found->is_null()) {
    if (!found->is_object())
      throw ConfigError("{}: transformer: found {}; expected an object, an encoder's config.json", source,
                        found->type_name());
    config.transformer = *found;
  }
  field.read("transformer_path", config.transformer_path);
  field.read("layers", config.layers);
  field.read("layer_mean", config.layer_mean);
  field.read("subtoken_pooling", config.subtoken_pooling);
  field.read("fine_tune", config.fine_tune);
  field.read("vocab_size", config.vocab_size, 1, max_width);
  field.read("word_dimensions", config.word_dimensions, 0, max_width);
  field.read("train_words", config.train_words);
  field.read("characters", config.characters);
  field.read("character_dimensions", config.character_dimensions, 1, max_width);
  field.read("character_hidden_size", config.character_hidden_size, 1, max_width);
  field.read("reproject_embeddings", config.reproject_embeddings);
  field.read("rnn_type", config.rnn_type);
  field.read("hidden_size", config.hidden_size, 1, max_width);
  field.read("rnn_layers", config.rnn_layers, 1, max_layers);
  field.read("bidirectional", config.bidirectional);
  field.read("use_crf", config.use_crf);
  field.read("dropout", config.dropout, 0, 1);
  field.read("word_dropout", config.word_dropout, 0, 1);
  field.read("locked_dropout", config.locked_dropout, 0, 1);
  if (config.rnn_type != "LSTM" && config.rnn_type != "GRU" && config.rnn_type != "none")
    throw ConfigError("{}: rnn_type: found \"{}\"; expected LSTM, GRU or none", source, config.rnn_type);
  static const std::set<std::string> poolings = {"first", "last", "first_last", "mean"};
  if (!poolings.contains(config.subtoken_pooling))
    throw ConfigError("{}: subtoken_pooling: found \"{}\"; expected {}", source, config.subtoken_pooling,
                      fmt::join(poolings, ", "));
  if (config.vocab_size < 1) throw ConfigError("{}: vocab_size is missing; expected at least 1", source);
  if (config.embedding_size() == 0 && config.transformer.is_null()) {
    throw ConfigError(
        "{}: word_dimensions is 0, and there are neither characters nor a transformer: words have no vectors; set one of them",
        source);
  }
  check_parameter_count(
      {{config.vocab_size, config.word_dimensions}}, source,
      fmt::format("vocab_size {} x word_dimensions {}", config.vocab_size, config.word_dimensions));
  check_parameter_count({{config.rnn_layers, 16, config.hidden_size, config.hidden_size}}, source,
                        fmt::format("rnn_layers {} x hidden_size {}", config.rnn_layers, config.hidden_size));
  check_parameter_count(
      {{8, config.character_hidden_size, config.character_hidden_size + config.character_dimensions}}, source,
      fmt::format("character_hidden_size {} x character_dimensions {}", config.character_hidden_size,
                  config.character_dimensions));
  config.labels = read_labels(json, source);
  return config;
}

nlohmann::json SequenceTaggerConfig::to_json(const nlohmann::json& original) const {
  nlohmann::json json = begin_config_json(original, model_type, "SequenceTaggerForTokenClassification");
  json.erase("transformer_path");  // the weights are saved with the others
  if (transformer.is_null()) {
    for (const char* key : {"transformer", "layers", "layer_mean", "subtoken_pooling", "fine_tune"})
      json.erase(key);
  } else {
    json["transformer"] = transformer;
    json["layers"] = layers;
    json["layer_mean"] = layer_mean;
    json["subtoken_pooling"] = subtoken_pooling;
    json["fine_tune"] = fine_tune;
  }
  json["vocab_size"] = vocab_size;
  json["word_dimensions"] = word_dimensions;
  json["train_words"] = train_words;
  json["characters"] = characters;
  json["character_dimensions"] = character_dimensions;
  json["character_hidden_size"] = character_hidden_size;
  json["reproject_embeddings"] = reproject_embeddings;
  json["rnn_type"] = rnn_type;
  json["hidden_size"] = hidden_size;
  json["rnn_layers"] = rnn_layers;
  json["bidirectional"] = bidirectional;
  json["use_crf"] = use_crf;
  json["dropout"] = dropout;
  json["word_dropout"] = word_dropout;
  json["locked_dropout"] = locked_dropout;
  write_labels(json, labels, /*is_text_classifier=*/false);
  return json;
}

}  // namespace stretto
