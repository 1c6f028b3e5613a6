#include "stretto/model_config/bert.h"

#include <algorithm>
#include <array>

#include "stretto/base/error.h"
#include "stretto/model_config/activations.h"
#include "stretto/model_config/config_fields.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/outline.h"
#include "stretto/model_config/transformer_sizes.h"

namespace stretto {
namespace {

constexpr std::array<BertVariant, 4> variants = {{
    {.model_type = "bert", .class_name = "Bert", .encoder_name = "bert", .has_pooler = true},
    {.model_type = "roberta",
     .class_name = "Roberta",
     .encoder_name = "roberta",
     .positions_follow_padding = true,
     .vocab_size = 50265,
     .pad_token_id = 1},
    {.model_type = "xlm-roberta",
     .class_name = "XLMRoberta",
     .encoder_name = "roberta",
     .positions_follow_padding = true,
     .vocab_size = 50265,
     .pad_token_id = 1},
    {.model_type = "electra",
     .class_name = "Electra",
     .encoder_name = "electra",
     .head_activation = "gelu",
     .embedding_size = 128,
     .hidden_size = 256,
     .num_attention_heads = 4,
     .intermediate_size = 1024},
}};

const std::vector<ConfigField<BertConfig>>& bert_fields() {
  using Config = BertConfig;
  static const std::vector<ConfigField<Config>> table = {
      {"vocab_size", &Config::vocab_size, 1, max_width},
      {"hidden_size", &Config::hidden_size, 1, max_width},
      {"num_hidden_layers", &Config::num_hidden_layers, 0, max_layers},
      {"num_attention_heads", &Config::num_attention_heads, 1, max_width},
      {"intermediate_size", &Config::intermediate_size, 1, max_width},
      {"max_position_embeddings", &Config::max_position_embeddings, 1, max_width},
      {"type_vocab_size", &Config::type_vocab_size, 1, max_width},
      {"pad_token_id", &Config::pad_token_id, 0, max_width},
      {"hidden_act", &Config::hidden_act, activation_names},
      {"layer_norm_eps", &Config::layer_norm_eps},
      {"initializer_range", &Config::initializer_range, 100},
      {"hidden_dropout_prob", &Config::hidden_dropout_prob},
      {"attention_probs_dropout_prob", &Config::attention_probs_dropout_prob},
      {"classifier_dropout", &Config::classifier_dropout}};
  return table;
}

const ConfigField<BertConfig> embedding_field = {"embedding_size", &BertConfig::embedding_size, 1, max_width};

void check_sizes(const BertConfig& config, const std::string& source) {
  const NamedSize width = {"hidden_size", config.hidden_size};
  const NamedSize of_tables = config.embedding_size == config.hidden_size
                                  ? width
                                  : NamedSize{"embedding_size", config.embedding_size};
  check_transformer_sizes(source, width,
                          {{{"vocab_size", config.vocab_size}, of_tables},
                           {{"max_position_embeddings", config.max_position_embeddings}, of_tables},
                           {{"type_vocab_size", config.type_vocab_size}, of_tables},
                           {width, of_tables}},
                          {{.layers = {"num_hidden_layers", config.num_hidden_layers},
                            .heads = {"num_attention_heads", config.num_attention_heads},
                            .inner = {"intermediate_size", config.intermediate_size}}});
}

}  // namespace

std::span<const BertVariant> bert_variants() { return variants; }

const BertVariant& BertConfig::variant() const {
  const auto found = std::ranges::find(variants, model_type, &BertVariant::model_type);
  if (found != variants.end()) return *found;
  throw ConfigError("model_type \"{}\" is not a variant of BERT", model_type);
}

void BertConfig::set_dropout(double p) {
  hidden_dropout_prob = attention_probs_dropout_prob = classifier_dropout = p;
}

BertConfig BertConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  BertConfig config;
  field.read("model_type", config.model_type);
  if (std::ranges::find(variants, config.model_type, &BertVariant::model_type) == variants.end())
    field.require("model_type", "bert");
  const BertVariant& variant = config.variant();
  config.vocab_size = variant.vocab_size;
  config.pad_token_id = variant.pad_token_id;
  config.hidden_size = variant.hidden_size;
  config.num_attention_heads = variant.num_attention_heads;
  config.intermediate_size = variant.intermediate_size;
  field.require("position_embedding_type", "absolute");
  field.require("is_decoder", false);
  field.require("add_cross_attention", false);
  field.read("hidden_dropout_prob", config.classifier_dropout, 0, 1);  // the default
  read_fields(bert_fields(), field, config);
  config.embedding_size = variant.embedding_size > 0 ? variant.embedding_size : config.hidden_size;
  if (variant.embedding_size > 0) embedding_field.read(field, config);
  if (config.max_length() < 1) {
    throw ConfigError(
        "{}: max_position_embeddings ({}) must exceed pad_token_id + 1 ({}), the first position", source,
        config.max_position_embeddings, config.first_position());
  }
  check_sizes(config, source);
  config.labels = read_labels(json, source);
  return config;
}

BertConfig BertConfig::read(const std::filesystem::path& config_json) {
  return from_json(read_config_json(config_json), config_json.string());
}

nlohmann::json BertConfig::to_json(const nlohmann::json& original, const std::string& architecture) const {
  nlohmann::json json = begin_config_json(original, model_type, architecture);
  write_fields(bert_fields(), *this, json);
  if (variant().embedding_size > 0) embedding_field.write(*this, json);
  write_labels(json, labels, architecture.ends_with("ForSequenceClassification"));
  return json;
}

std::optional<ModelOutline> BertConfig::outline(std::string_view head) const {
  const int64_t width = hidden_size;
  const std::string encoder = std::string(variant().encoder_name) + ".";
  ModelOutline outline;
  outline.layers = num_hidden_layers;
  outline.width = width;
  outline.heads = outline.key_heads = num_attention_heads;
  outline.begin_block(encoder + "embeddings");
  outline.table(encoder + "embeddings.word_embeddings", vocab_size, embedding_size);
  outline.table(encoder + "embeddings.position_embeddings", max_position_embeddings, embedding_size);
  outline.table(encoder + "embeddings.token_type_embeddings", type_vocab_size, embedding_size);
  outline.norm(encoder + "embeddings.LayerNorm", embedding_size);
  outline.begin_block("");
  if (embedding_size != width) outline.linear(encoder + "embeddings_project", embedding_size, width);
  for (int64_t i = 0; i < num_hidden_layers; ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}", encoder, i);
    outline.begin_block(layer);
    for (const char* product : {"query", "key", "value"})
      outline.linear(layer + ".attention.self." + product, width, width);
    outline.linear(layer + ".attention.output.dense", width, width);
    outline.norm(layer + ".attention.output.LayerNorm", width);
    outline.linear(layer + ".intermediate.dense", width, intermediate_size);
    outline.linear(layer + ".output.dense", intermediate_size, width);
    outline.norm(layer + ".output.LayerNorm", width);
  }
  outline.begin_block("");
  if (head == heads::sequence_classification && variant().has_pooler)
    outline.linear(encoder + "pooler.dense", width, width);
  if (head == heads::sequence_classification && !variant().has_pooler) {
    outline.linear("classifier.dense", width, width);
    outline.linear("classifier.out_proj", width, num_labels());
  } else if (head == heads::sequence_classification || head == heads::token_classification) {
    outline.linear("classifier", width, num_labels());
  } else if (head == heads::question_answering) {
    outline.linear("qa_outputs", width, 2);
  } else if (head != heads::hidden_states) {
    return std::nullopt;
  }
  return outline;
}

}  // namespace stretto
