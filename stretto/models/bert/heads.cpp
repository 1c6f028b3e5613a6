#include "stretto/model_config/heads.h"

#include "stretto/base/error.h"
#include "stretto/model_config/layer_numbers.h"
#include "stretto/models/bert/model.h"
#include "stretto/models/blocks.h"
#include "stretto/models/layer_states.h"

namespace stretto {
namespace {

BertConfig bert_config(const nlohmann::json& config, const std::string& source,
                       const TextModelOptions& options) {
  BertConfig bert = BertConfig::from_json(config, source);
  if (options.labels) bert.labels = *options.labels;
  if (options.dropout) bert.set_dropout(*options.dropout);
  return bert;
}

void replace_suffix(std::string& name, const std::string& old_suffix, const std::string& new_suffix) {
  if (name.ends_with(old_suffix))
    name.replace(name.size() - old_suffix.size(), old_suffix.size(), new_suffix);
}

// Files converted from TensorFlow have gamma and beta.
std::string current_norm_name(std::string name) {
  replace_suffix(name, "LayerNorm.gamma", "LayerNorm.weight");
  replace_suffix(name, "LayerNorm.beta", "LayerNorm.bias");
  return name;
}

template <class Model>
std::shared_ptr<TextModel> make_bert(const nlohmann::json& config, const std::string& source,
                                     const TextModelOptions& options) {
  return nn::make_sharded<Model>(bert_config(config, source, options), options.tensor_parallel);
}

// Hugging Face's BertModel without its pooler. Layers after the last one of `layers` are not trained.
class BertHiddenStates : public BertWithHead {
 public:
  BertHiddenStates(const BertConfig& config, std::vector<int64_t> layers, const nn::TensorParallel& ranks)
      : BertWithHead(config, heads::hidden_states, /*sparse_words=*/true, ranks),
        layers_(std::move(layers)),
        shape_{std::ssize(layers_), config.hidden_size} {
    freeze_layers_after(*this, ".encoder.layer.", layers_);
  }

  Tensor forward(const Batch& batch, const nn::Context& context) const override {
    return bert_->forward_layers(batch, nn::PackedLayout(batch), context, layers_);
  }

  Capabilities capabilities() const override { return {.hidden_states = &shape_}; }

 private:
  std::vector<int64_t> layers_;
  HiddenStates shape_;
};

}  // namespace

BertWithHead::BertWithHead(const BertConfig& config, const std::string& head, bool sparse_words,
                           const nn::TensorParallel& ranks)
    : config_(config), head_(head) {
  const BertVariant& variant = config.variant();
  const bool pools = head == heads::sequence_classification && variant.has_pooler;
  bert_ =
      register_module(variant.encoder_name, std::make_shared<BertModel>(config, sparse_words, pools, ranks));
}

Tensor BertWithHead::head_dropout(const Tensor& x, const nn::PackedLayout& layout, const nn::Context& context,
                                  uint64_t index) const {
  return nn::dropout(x, config_.classifier_dropout, head_dropout_site - index, layout, context);
}

nlohmann::json BertWithHead::config_json(const nlohmann::json& original) const {
  return config_.to_json(original, heads::architecture(config_.variant().class_name, head_));
}

nn::InitialValue BertWithHead::initial_value(const nn::LayerParameter& parameter) const {
  const nn::InitRule rule = {
      .std = config_.initializer_range,
      .table = std::string(config_.variant().encoder_name) + ".embeddings.word_embeddings.weight",
      .padding_row = config_.pad_token_id};
  return rule.of(parameter);
}

WeightNames BertWithHead::weight_names() const {
  const std::string prefix = std::string(config_.variant().encoder_name) + ".";
  const bool pools = head_ == heads::sequence_classification && config_.variant().has_pooler;
  const auto is_leftover = [prefix, pools](const std::string& name) {
    return name.starts_with("cls.") || name.starts_with("lm_head.") ||
           name.starts_with("discriminator_predictions.") || name.starts_with("generator_predictions.") ||
           name.starts_with("generator_lm_head.") || name.ends_with("embeddings.position_ids") ||
           (!pools && name.starts_with(prefix + "pooler."));
  };
  return {.head = head_,
          .prefix = prefix,
          .parts = {"embeddings.", "embeddings_project.", "encoder.", "pooler."},
          .renamed = current_norm_name,
          .is_leftover = is_leftover};
}

BertForSequenceClassification::BertForSequenceClassification(const BertConfig& config,
                                                             const nn::TensorParallel& ranks,
                                                             bool sparse_words)
    : BertWithHead(config, heads::sequence_classification, sparse_words, ranks) {
  classifier_ =
      register_module("classifier", std::make_shared<nn::Linear>(config.hidden_size, config.num_labels()));
}

Tensor BertForSequenceClassification::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch);
  const Tensor pooled = bert_->pool(bert_->forward_first(batch, layout, context));
  return classifier_->forward(head_dropout(pooled, layout.first_tokens(), context));
}

BertWithLayeredClassifier::BertWithLayeredClassifier(const BertConfig& config,
                                                     const nn::TensorParallel& ranks)
    : BertWithHead(config, heads::sequence_classification, /*sparse_words=*/true, ranks),
      activation_(nn::activation(config.variant().head_activation)) {
  dense_ = nn::add_layer(*this, "classifier.dense",
                         std::make_shared<nn::Linear>(config.hidden_size, config.hidden_size));
  out_ = nn::add_layer(*this, "classifier.out_proj",
                       std::make_shared<nn::Linear>(config.hidden_size, config.num_labels()));
}

Tensor BertWithLayeredClassifier::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch), first = layout.first_tokens();
  const Tensor state = head_dropout(bert_->forward_first(batch, layout, context), first, context, 1);
  const Tensor inner = nn::activate(dense_->forward(state), activation_);
  return out_->forward(head_dropout(inner, first, context));
}

BertForTokenClassification::BertForTokenClassification(const BertConfig& config,
                                                       const nn::TensorParallel& ranks)
    : BertWithHead(config, heads::token_classification, /*sparse_words=*/true, ranks) {
  classifier_ =
      register_module("classifier", std::make_shared<nn::Linear>(config.hidden_size, config.num_labels()));
}

Tensor BertForTokenClassification::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch);
  return classifier_->forward(head_dropout(bert_->forward(batch, layout, context), layout, context));
}

BertForQuestionAnswering::BertForQuestionAnswering(const BertConfig& config, const nn::TensorParallel& ranks)
    : BertWithHead(config, heads::question_answering, /*sparse_words=*/true, ranks) {
  outputs_ = register_module("qa_outputs", std::make_shared<nn::Linear>(config.hidden_size, 2));
}

Tensor BertForQuestionAnswering::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch);
  return outputs_->forward(bert_->forward(batch, layout, context));
}

std::shared_ptr<TextModel> make_bert_hidden_states(const nlohmann::json& config, const std::string& source,
                                                   const TextModelOptions& options) {
  const BertConfig bert = bert_config(config, source, options);
  return nn::make_sharded<BertHiddenStates>(
      bert, layer_numbers(options.layers, bert.num_hidden_layers, source), options.tensor_parallel);
}

std::shared_ptr<TextModel> make_bert_sequence_classifier(const nlohmann::json& config,
                                                         const std::string& source,
                                                         const TextModelOptions& options) {
  return make_bert<BertForSequenceClassification>(config, source, options);
}

std::shared_ptr<TextModel> make_layered_bert_sequence_classifier(const nlohmann::json& config,
                                                                 const std::string& source,
                                                                 const TextModelOptions& options) {
  return make_bert<BertWithLayeredClassifier>(config, source, options);
}

std::shared_ptr<TextModel> make_bert_token_classifier(const nlohmann::json& config, const std::string& source,
                                                      const TextModelOptions& options) {
  return make_bert<BertForTokenClassification>(config, source, options);
}

std::shared_ptr<TextModel> make_bert_question_answerer(const nlohmann::json& config,
                                                       const std::string& source,
                                                       const TextModelOptions& options) {
  TextModelOptions two = options;
  two.labels = {"LABEL_0", "LABEL_1"};  // start and end, as Hugging Face names them
  return make_bert<BertForQuestionAnswering>(config, source, two);
}

}  // namespace stretto
