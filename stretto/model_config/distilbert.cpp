#include "stretto/model_config/distilbert.h"

#include "stretto/model_config/config_fields.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/outline.h"
#include "stretto/model_config/transformer_sizes.h"

namespace stretto {
namespace {

const std::vector<ConfigField<DistilBertConfig>>& distilbert_fields() {
  using Config = DistilBertConfig;
  static const std::vector<ConfigField<Config>> table = {
      {"vocab_size", &Config::vocab_size, 1, max_width},
      {"max_position_embeddings", &Config::max_position_embeddings, 1, max_width},
      {"n_layers", &Config::n_layers, 0, max_layers},
      {"n_heads", &Config::n_heads, 1, max_width},
      {"dim", &Config::dim, 1, max_width},
      {"hidden_dim", &Config::hidden_dim, 1, max_width},
      {"pad_token_id", &Config::pad_token_id, 0, max_width},
      {"activation", &Config::activation},
      {"initializer_range", &Config::initializer_range, 100},
      {"dropout", &Config::dropout},
      {"attention_dropout", &Config::attention_dropout},
      {"seq_classif_dropout", &Config::seq_classif_dropout},
      {"qa_dropout", &Config::qa_dropout}};
  return table;
}

}  // namespace

void DistilBertConfig::set_dropout(double p) {
  dropout = attention_dropout = seq_classif_dropout = qa_dropout = p;
}

DistilBertConfig DistilBertConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  field.require("model_type", "distilbert");
  DistilBertConfig config;
  read_fields(distilbert_fields(), field, config);
  const NamedSize width = {"dim", config.dim};
  check_transformer_sizes(source, width,
                          {{{"vocab_size", config.vocab_size}, width},
                           {{"max_position_embeddings", config.max_position_embeddings}, width},
                           {width, width}},
                          {{.layers = {"n_layers", config.n_layers},
                            .heads = {"n_heads", config.n_heads},
                            .inner = {"hidden_dim", config.hidden_dim}}});
  config.labels = read_labels(json, source);
  return config;
}

nlohmann::json DistilBertConfig::to_json(const nlohmann::json& original,
                                         const std::string& architecture) const {
  nlohmann::json json = begin_config_json(original, "distilbert", architecture);
  write_fields(distilbert_fields(), *this, json);
  write_labels(json, labels, architecture.ends_with("ForSequenceClassification"));
  return json;
}

std::optional<ModelOutline> DistilBertConfig::outline(std::string_view head) const {
  ModelOutline outline;
  outline.layers = n_layers;
  outline.width = dim;
  outline.heads = outline.key_heads = n_heads;
  outline.begin_block("distilbert.embeddings");
  outline.table("distilbert.embeddings.word_embeddings", vocab_size, dim);
  outline.table("distilbert.embeddings.position_embeddings", max_position_embeddings, dim);
  outline.norm("distilbert.embeddings.LayerNorm", dim);
  for (int64_t i = 0; i < n_layers; ++i) {
    const std::string layer = fmt::format("distilbert.transformer.layer.{}", i);
    outline.begin_block(layer);
    for (const char* product : {"q_lin", "k_lin", "v_lin", "out_lin"})
      outline.linear(layer + ".attention." + product, dim, dim);
    outline.norm(layer + ".sa_layer_norm", dim);
    outline.linear(layer + ".ffn.lin1", dim, hidden_dim);
    outline.linear(layer + ".ffn.lin2", hidden_dim, dim);
    outline.norm(layer + ".output_layer_norm", dim);
  }
  outline.begin_block("");
  if (head == heads::sequence_classification) outline.linear("pre_classifier", dim, dim);
  if (head == heads::sequence_classification || head == heads::token_classification) {
    outline.linear("classifier", dim, num_labels());
  } else if (head == heads::question_answering) {
    outline.linear("qa_outputs", dim, 2);
  } else if (head != heads::hidden_states) {
    return std::nullopt;
  }
  return outline;
}

}  // namespace stretto
