#include "stretto/models/distilbert/model.h"

#include <algorithm>

#include "stretto/model_config/heads.h"
#include "stretto/model_config/layer_numbers.h"
#include "stretto/models/layer_states.h"

namespace stretto {
namespace {

constexpr double distilbert_norm_eps = 1e-12;

}  // namespace

DistilBertLayer::DistilBertLayer(const DistilBertConfig& config, uint64_t first_site,
                                 const nn::TensorParallel& ranks)
    : attention_(
          *this,
          {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm"},
          {.width = config.dim,
           .heads = config.n_heads,
           .norm_eps = distilbert_norm_eps,
           .dropout = 0,
           .attention_dropout = config.attention_dropout,
           .first_site = first_site,
           .ranks = ranks}),
      mlp_(*this, {"ffn.lin1", "ffn.lin2", "output_layer_norm"},
           {.width = config.dim,
            .inner = config.hidden_dim,
            .norm_eps = distilbert_norm_eps,
            .dropout = config.dropout,
            .first_site = first_site + 2,
            .activation = nn::activation(config.activation),
            .ranks = ranks}) {}

Tensor DistilBertLayer::forward(const Tensor& x, const nn::PackedLayout& layout,
                                const nn::PackedLayout& wanted, const nn::Context& context) const {
  return mlp_.forward(attention_.forward(x, layout, wanted, context), wanted, context);
}

DistilBertEmbeddings::DistilBertEmbeddings(const DistilBertConfig& config, const nn::TensorParallel& ranks)
    : max_length_(config.max_position_embeddings), dropout_(config.dropout) {
  words_ = register_module("word_embeddings",
                           std::make_shared<nn::VocabularyEmbedding>(config.vocab_size, config.dim, ranks,
                                                                     /*sparse=*/true));
  positions_ = register_module("position_embeddings",
                               std::make_shared<nn::Embedding>(config.max_position_embeddings, config.dim));
  norm_ = register_module("LayerNorm", std::make_shared<nn::LayerNorm>(config.dim, distilbert_norm_eps));
}

Tensor DistilBertEmbeddings::forward(const Batch& batch, const nn::PackedLayout& layout,
                                     const nn::Context& context) const {
  require_length(layout, max_length_);
  const Tensor summed =
      words_->sum(batch.at("input_ids"), {positions_->lookup(layout.position_ids)}, context);
  return nn::norm_dropout(summed, norm_->all(), dropout_, /*site=*/0, layout, context);
}

DistilBertModel::DistilBertModel(const DistilBertConfig& config, const nn::TensorParallel& ranks)
    : ranks_(ranks),
      embeddings_(register_module("embeddings", nn::make_sharded<DistilBertEmbeddings>(config, ranks))) {
  uint64_t site = 1;
  for (int64_t i = 0; i < config.n_layers; ++i, site += DistilBertLayer::sites) {
    layers_.push_back(nn::add_layer(*this, "transformer.layer." + std::to_string(i),
                                    nn::make_sharded<DistilBertLayer>(config, site, ranks)));
  }
}

Tensor DistilBertModel::forward(const Batch& batch, const nn::PackedLayout& layout,
                                const nn::PackedLayout& wanted, const nn::Context& context) const {
  Tensor hidden = embeddings_->forward(batch, layout, context);
  if (layers_.empty()) return rows_of(hidden, layout, wanted);
  const RowsBetweenBlocks rows(ranks_, layout, context), last(ranks_, wanted, context);
  hidden = rows.divide(hidden);
  for (size_t i = 0; i < layers_.size(); ++i)
    hidden =
        run_layer(i, hidden, rows.layout(), i + 1 == layers_.size() ? last.layout() : rows.layout(), context);
  return last.join(hidden);
}

Tensor DistilBertModel::run_layer(size_t index, const Tensor& hidden, const nn::PackedLayout& layout,
                                  const nn::PackedLayout& wanted, const nn::Context& context) const {
  const auto& layer = layers_[index];
  return run_block(*layer, static_cast<int64_t>(index), context, {hidden},
                   [layer, layout, wanted, context](const nn::Carry& carry) {
                     return layer->forward(carry[0], layout, wanted, context);
                   });
}

Tensor DistilBertModel::forward_layers(const Batch& batch, const nn::PackedLayout& layout,
                                       const nn::Context& context, const std::vector<int64_t>& layers) const {
  const RowsBetweenBlocks rows(ranks_, layout, context);
  std::vector<Tensor> states = {rows.divide(embeddings_->forward(batch, layout, context))};
  const auto last = static_cast<size_t>(*std::ranges::max_element(layers));
  for (size_t i = 0; i < last; ++i)
    states.push_back(run_layer(i, states.back(), rows.layout(), rows.layout(), context));
  return rows.join(side_by_side(states, layers));
}

DistilBertWithHead::DistilBertWithHead(const DistilBertConfig& config, const std::string& head,
                                       std::vector<int64_t> layers, const nn::TensorParallel& ranks)
    : config_(config), head_(head), layers_(std::move(layers)), shape_{std::ssize(layers_), config.dim} {
  encoder_ = register_module("distilbert", std::make_shared<DistilBertModel>(config, ranks));
  if (head == heads::hidden_states) {
    freeze_layers_after(*this, ".transformer.layer.", layers_);
    return;
  }
  if (head == heads::sequence_classification)
    before_ = register_module("pre_classifier", std::make_shared<nn::Linear>(config.dim, config.dim));
  out_ = head == heads::question_answering
             ? register_module("qa_outputs", std::make_shared<nn::Linear>(config.dim, 2))
             : register_module("classifier", std::make_shared<nn::Linear>(config.dim, config.num_labels()));
}

Tensor DistilBertWithHead::forward(const Batch& batch, const nn::Context& context) const {
  const nn::PackedLayout layout(batch);
  if (head_ == heads::hidden_states) return encoder_->forward_layers(batch, layout, context, layers_);
  const bool whole_texts = head_ == heads::sequence_classification;
  const nn::PackedLayout rows = whole_texts ? layout.first_tokens() : layout;
  Tensor state = encoder_->forward(batch, layout, rows, context);
  if (whole_texts) state = at::relu(before_->forward(state));
  const double p = whole_texts                          ? config_.seq_classif_dropout
                   : head_ == heads::question_answering ? config_.qa_dropout
                                                        : config_.dropout;
  return out_->forward(nn::dropout(state, p, head_dropout_site, rows, context));
}

nn::InitialValue DistilBertWithHead::initial_value(const nn::LayerParameter& parameter) const {
  const nn::InitRule rule = {.std = config_.initializer_range,
                             .table = "distilbert.embeddings.word_embeddings.weight",
                             .padding_row = config_.pad_token_id};
  return rule.of(parameter);
}

WeightNames DistilBertWithHead::weight_names() const {
  return {.head = head_,
          .prefix = "distilbert.",
          .parts = {"embeddings.", "transformer."},
          .is_leftover = [](const std::string& name) {
            return name.starts_with("vocab_") || name.starts_with("pre_classifier.");
          }};
}

nlohmann::json DistilBertWithHead::config_json(const nlohmann::json& original) const {
  return config_.to_json(original, heads::architecture("DistilBert", head_));
}

std::shared_ptr<TextModel> make_distilbert(const std::string& head, const nlohmann::json& config,
                                           const std::string& source, const TextModelOptions& options) {
  DistilBertConfig distilbert = DistilBertConfig::from_json(config, source);
  if (options.labels) distilbert.labels = *options.labels;
  if (head == heads::question_answering) distilbert.labels = {"LABEL_0", "LABEL_1"};
  if (options.dropout) distilbert.set_dropout(*options.dropout);
  std::vector<int64_t> layers;
  if (head == heads::hidden_states) layers = layer_numbers(options.layers, distilbert.n_layers, source);
  return nn::make_sharded<DistilBertWithHead>(distilbert, head, std::move(layers), options.tensor_parallel);
}

}  // namespace stretto
