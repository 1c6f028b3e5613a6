#include "stretto/base/error.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/bart/model.h"

namespace stretto {
namespace {

// The names of the word embedding table in files in which encoder and decoder each store it.
std::string current_table_name(const std::string& name) {
  return name.ends_with("coder.embed_tokens.weight") ? "model.shared.weight" : name;
}

}  // namespace

BartForSequenceClassification::BartForSequenceClassification(const BartConfig& config,
                                                             const nn::TensorParallel& ranks)
    : config_(config) {
  model_ = register_module("model", std::make_shared<BartModel>(config, ranks));
  dense_ = nn::add_layer(*this, "classification_head.dense",
                         std::make_shared<nn::Linear>(config.d_model, config.d_model));
  out_ = nn::add_layer(*this, "classification_head.out_proj",
                       std::make_shared<nn::Linear>(config.d_model, config.num_labels()));
}

Tensor BartForSequenceClassification::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch);
  const Tensor ends = batch.at("input_ids").index_select(0, layout.last_rows());
  if (!ends.eq(config_.eos_token_id).all().item<bool>()) {
    throw DataError(
        "a text does not end with eos_token_id ({}), where BART classifies; use the tokenizer of the model's folder",
        config_.eos_token_id);
  }
  const nn::PackedLayout last = layout.last_tokens();
  Tensor x = model_->forward_last(batch, layout, context);
  x = nn::dropout(x, config_.classifier_dropout, head_dropout_site - 1, last, context);
  x = at::tanh(dense_->forward(x));
  return out_->forward(nn::dropout(x, config_.classifier_dropout, head_dropout_site, last, context));
}

nn::InitialValue BartForSequenceClassification::initial_value(const nn::LayerParameter& parameter) const {
  const nn::InitRule rule = {
      .std = config_.init_std, .table = "model.shared.weight", .padding_row = config_.pad_token_id};
  return rule.of(parameter);
}

WeightNames BartForSequenceClassification::weight_names() const {
  return {.head = heads::sequence_classification,
          .prefix = "model.",
          .parts = {"shared.", "encoder.", "decoder."},
          .renamed = current_table_name,
          .is_leftover = [](const std::string& name) {
            return name == "final_logits_bias" || name.starts_with("lm_head.");
          }};
}

nlohmann::json BartForSequenceClassification::config_json(const nlohmann::json& original) const {
  return config_.to_json(original, heads::architecture("Bart", heads::sequence_classification));
}

std::shared_ptr<TextModel> make_bart_sequence_classifier(const nlohmann::json& config,
                                                         const std::string& source,
                                                         const TextModelOptions& options) {
  BartConfig bart = BartConfig::from_json(config, source);
  if (options.labels) bart.labels = *options.labels;
  if (options.dropout) bart.set_dropout(*options.dropout);
  return nn::make_sharded<BartForSequenceClassification>(bart, options.tensor_parallel);
}

}  // namespace stretto
