#include "stretto/models/bert/model.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/models/bert/layers.h"
#include "stretto/models/layer_states.h"

namespace stretto {
namespace {

// Dropout sites: 0 for the embeddings, three per layer, the last for the head (heads.cpp).
constexpr uint64_t embedding_site = 0;
constexpr uint64_t sites_per_layer = 3;

uint64_t first_site(int64_t layer) {
  return embedding_site + 1 + sites_per_layer * static_cast<uint64_t>(layer);
}

}  // namespace

BertLayer::BertLayer(const BertConfig& config, int64_t index, const nn::TensorParallel& ranks)
    : attention_(*this,
                 {"attention.self.query", "attention.self.key", "attention.self.value",
                  "attention.output.dense", "attention.output.LayerNorm"},
                 {.width = config.hidden_size,
                  .heads = config.num_attention_heads,
                  .norm_eps = config.layer_norm_eps,
                  .dropout = config.hidden_dropout_prob,
                  .attention_dropout = config.attention_probs_dropout_prob,
                  .first_site = first_site(index),
                  .ranks = ranks}),
      mlp_(*this, {"intermediate.dense", "output.dense", "output.LayerNorm"},
           {.width = config.hidden_size,
            .inner = config.intermediate_size,
            .norm_eps = config.layer_norm_eps,
            .dropout = config.hidden_dropout_prob,
            .first_site = first_site(index) + 2,
            .activation = nn::activation(config.hidden_act),
            .ranks = ranks}) {}

Tensor BertLayer::forward(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                          const nn::Context& context) const {
  return mlp_.forward(attention_.forward(x, layout, wanted, context), wanted, context);
}

BertEmbeddings::BertEmbeddings(const BertConfig& config, bool sparse_words, const nn::TensorParallel& ranks)
    : max_length_(config.max_length()),
      first_position_(config.first_position()),
      dropout_(config.hidden_dropout_prob) {
  const int64_t width = config.embedding_size;
  const auto table = [&](const char* name, int64_t rows) {
    return register_module(name, std::make_shared<nn::Embedding>(rows, width));
  };
  words_ = register_module("word_embeddings", std::make_shared<nn::VocabularyEmbedding>(
                                                  config.vocab_size, width, ranks, sparse_words));
  positions_ = table("position_embeddings", config.max_position_embeddings);
  token_types_ = table("token_type_embeddings", config.type_vocab_size);
  norm_ = register_module("LayerNorm", std::make_shared<nn::LayerNorm>(width, config.layer_norm_eps));
}

Tensor BertEmbeddings::forward(const Batch& batch, const nn::PackedLayout& layout,
                               const nn::Context& context) const {
  require_length(layout, max_length_);
  const Tensor summed =
      words_->sum(batch.at("input_ids"),
                  {token_types_->lookup(batch.at("token_type_ids")),
                   positions_->lookup(first_position_ == 0 ? layout.position_ids
                                                           : layout.position_ids + first_position_)},
                  context);
  return nn::norm_dropout(summed, norm_->all(), dropout_, embedding_site, layout, context);
}

BertModel::BertModel(const BertConfig& config, bool sparse_words, bool with_pooler,
                     const nn::TensorParallel& ranks)
    : ranks_(ranks),
      embeddings_(
          register_module("embeddings", nn::make_sharded<BertEmbeddings>(config, sparse_words, ranks))) {
  if (config.embedding_size != config.hidden_size)
    projection_ = register_module("embeddings_project",
                                  std::make_shared<nn::Linear>(config.embedding_size, config.hidden_size));
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(nn::add_layer(*this, "encoder.layer." + std::to_string(i),
                                    nn::make_sharded<BertLayer>(config, i, ranks)));
  }
  if (!with_pooler) return;
  pooler_ = nn::add_layer(*this, "pooler.dense",
                          std::make_shared<nn::Linear>(config.hidden_size, config.hidden_size));
}

BertModel::~BertModel() = default;

Tensor BertModel::forward(const Batch& batch, const nn::PackedLayout& layout,
                          const nn::Context& context) const {
  const RowsBetweenBlocks rows(ranks_, layout, context);
  Tensor hidden = rows.divide(embed(batch, layout, context));
  for (size_t i = 0; i < layers_.size(); ++i)
    hidden = run_layer(i, hidden, rows.layout(), rows.layout(), context);
  return rows.join(hidden);
}

Tensor BertModel::forward_layers(const Batch& batch, const nn::PackedLayout& layout,
                                 const nn::Context& context, const std::vector<int64_t>& layers) const {
  const RowsBetweenBlocks rows(ranks_, layout, context);
  std::vector<Tensor> states = {rows.divide(embed(batch, layout, context))};
  const auto last = static_cast<size_t>(*std::ranges::max_element(layers));
  for (size_t i = 0; i < last; ++i)
    states.push_back(run_layer(i, states.back(), rows.layout(), rows.layout(), context));
  return rows.join(side_by_side(states, layers));
}

Tensor BertModel::embed(const Batch& batch, const nn::PackedLayout& layout,
                        const nn::Context& context) const {
  const Tensor embedded = embeddings_->forward(batch, layout, context);
  return projection_ ? projection_->forward(embedded) : embedded;
}

Tensor BertModel::run_layer(size_t index, const Tensor& hidden, const nn::PackedLayout& layout,
                            const nn::PackedLayout& wanted, const nn::Context& context) const {
  const auto& layer = layers_[index];
  return run_block(*layer, static_cast<int64_t>(index), context, {hidden},
                   [layer, layout, wanted, context](const nn::Carry& carry) {
                     return layer->forward(carry[0], layout, wanted, context);
                   });
}

Tensor BertModel::forward_first(const Batch& batch, const nn::PackedLayout& layout,
                                const nn::Context& context) const {
  Tensor hidden = embed(batch, layout, context);
  if (layers_.empty()) return hidden.index_select(0, layout.first_rows());
  const RowsBetweenBlocks rows(ranks_, layout, context), first(ranks_, layout.first_tokens(), context);
  hidden = rows.divide(hidden);
  for (size_t i = 0; i < layers_.size(); ++i)
    hidden = run_layer(i, hidden, rows.layout(), i + 1 == layers_.size() ? first.layout() : rows.layout(),
                       context);
  return first.join(hidden);
}

Tensor BertModel::pool(const Tensor& first) const { return at::tanh(pooler_->forward(first)); }

}  // namespace stretto
