#include "stretto/model_config/sequence_tagger.h"

#include <algorithm>
#include <set>

#include "stretto/base/error.h"
#include "stretto/model_config/config_fields.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/layer_numbers.h"
#include "stretto/model_config/outline.h"

namespace stretto {
namespace {

using Fields = std::vector<ConfigField<SequenceTaggerConfig>>;

// How the states of a transformer become vectors of words.
const Fields& transformer_fields() {
  using Config = SequenceTaggerConfig;
  static const Fields table = {{"layers", &Config::layers},
                               {"layer_mean", &Config::layer_mean},
                               {"subtoken_pooling", &Config::subtoken_pooling},
                               {"fine_tune", &Config::fine_tune},
                               {"context_separator", &Config::context_separator}};
  return table;
}

const Fields& tagger_fields() {
  using Config = SequenceTaggerConfig;
  static const Fields table = {{"vocab_size", &Config::vocab_size, 1, max_width},
                               {"word_dimensions", &Config::word_dimensions, 0, max_width},
                               {"train_words", &Config::train_words},
                               {"characters", &Config::characters},
                               {"character_dimensions", &Config::character_dimensions, 1, max_width},
                               {"character_hidden_size", &Config::character_hidden_size, 1, max_width},
                               {"reproject_embeddings", &Config::reproject_embeddings},
                               {"rnn_type", &Config::rnn_type},
                               {"hidden_size", &Config::hidden_size, 1, max_width},
                               {"rnn_layers", &Config::rnn_layers, 1, max_layers},
                               {"bidirectional", &Config::bidirectional},
                               {"use_crf", &Config::use_crf},
                               {"dropout", &Config::dropout},
                               {"word_dropout", &Config::word_dropout},
                               {"locked_dropout", &Config::locked_dropout}};
  return table;
}

}  // namespace

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
  read_fields(transformer_fields(), field, config);
  read_fields(tagger_fields(), field, config);
  if (config.rnn_type != "LSTM" && config.rnn_type != "GRU" && config.rnn_type != "none")
    throw ConfigError("{}: rnn_type: found \"{}\"; expected LSTM, GRU or none", source, config.rnn_type);
  static const std::set<std::string> poolings = {"first", "last", "first_last", "mean"};
  if (!poolings.contains(config.subtoken_pooling))
    throw ConfigError("{}: subtoken_pooling: found \"{}\"; expected {}", source, config.subtoken_pooling,
                      fmt::join(poolings, ", "));
  if (config.context_separator && config.transformer.is_null())
    throw ConfigError("{}: context_separator is true, but there is no transformer, which reads it", source);
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
  for (const char* key :
       {"transformer", "layers", "layer_mean", "subtoken_pooling", "fine_tune", "context_separator"})
    json.erase(key);
  if (!transformer.is_null()) {
    json["transformer"] = transformer;
    write_fields(transformer_fields(), *this, json);
  }
  write_fields(tagger_fields(), *this, json);
  write_labels(json, labels, /*is_text_classifier=*/false);
  return json;
}

namespace {

void add_recurrent(ModelOutline& outline, const std::string& name, int64_t gates, int64_t input,
                   int64_t hidden, int64_t layers, int64_t directions) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string end = fmt::format("_l{}{}", layer, direction == 0 ? "" : "_reverse");
      const int64_t rows = gates * hidden, width = layer == 0 ? input : directions * hidden;
      outline.add(name + ".weight_ih" + end, {rows, width}, rows * width);
      outline.add(name + ".weight_hh" + end, {rows, hidden}, rows * hidden);
      outline.add(name + ".bias_ih" + end, {rows});
      outline.add(name + ".bias_hh" + end, {rows});
    }
  }
}

// The layers from the highest of `read` on are not trained, because nothing reads their results.
void freeze_unread(ModelOutline& outline, const std::vector<int64_t>& read) {
  const int64_t first = *std::ranges::max_element(read);
  outline.freeze_if([first](const OutlineParameter& parameter) {
    const size_t at = parameter.block.find(".layer.");
    return at != std::string::npos && std::stoll(parameter.block.substr(at + 7)) >= first;
  });
}

}  // namespace

std::optional<ModelOutline> SequenceTaggerConfig::outline(std::string_view head) const {
  if (head != heads::token_classification) return std::nullopt;
  ModelOutline outline;
  int64_t width = embedding_size();
  if (!transformer.is_null()) {
    auto part = outline_of(transformer, "transformer", heads::hidden_states);
    if (!part) return std::nullopt;
    const std::vector<int64_t> read = layer_numbers(layers, part->layers, "layers");
    width += (layer_mean ? 1 : std::ssize(read)) * part->width * (subtoken_pooling == "first_last" ? 2 : 1);
    freeze_unread(*part, read);
    if (!fine_tune) part->freeze();
    outline.add_part("transformer.", std::move(*part));
  }
  if (word_dimensions > 0) {
    ModelOutline words;
    words.table("words", vocab_size, word_dimensions);
    if (!train_words) words.freeze();
    outline.add_part("", std::move(words));
  }
  if (!characters.empty()) {
    outline.table("characters", character_count(), character_dimensions);
    add_recurrent(outline, "character_rnn", 4, character_dimensions, character_hidden_size, 1, 2);
  }
  if (reproject_embeddings) outline.linear("reproject", width, width);
  if (rnn_type != "none") {
    const int64_t directions = bidirectional ? 2 : 1;
    add_recurrent(outline, "rnn", rnn_type == "LSTM" ? 4 : 3, width, hidden_size, rnn_layers, directions);
    width = directions * hidden_size;
  }
  const auto tags = std::ssize(labels);
  outline.linear("linear", width, tags);
  if (use_crf) {
    outline.begin_block("crf");
    outline.add("crf.transitions", {tags, tags});
    outline.add("crf.start", {tags});
    outline.add("crf.end", {tags});
  }
  return outline;
}

}  // namespace stretto
