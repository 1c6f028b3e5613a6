#include "stretto/models/bert/model.h"

#include "stretto/base/error.h"
#include "stretto/nn/activation_checkpoint.h"

namespace stretto {
namespace {

// Dropout sites: 0 for the embeddings, three per layer, the last for the head (heads.cpp).
constexpr uint64_t embedding_site = 0;
constexpr uint64_t sites_per_layer = 3;

}  // namespace

BertLayer::BertLayer(const BertConfig& config, int64_t index)
    : heads_(config.num_attention_heads),
      head_width_(config.hidden_size / config.num_attention_heads),
      hidden_dropout_(config.hidden_dropout_prob),
      attention_dropout_(config.attention_probs_dropout_prob),
      first_site_(embedding_site + 1 + sites_per_layer * static_cast<uint64_t>(index)),
      activation_(nn::activation(config.hidden_act)) {
  const int64_t width = config.hidden_size, wide = config.intermediate_size;
  const auto linear = [&](const char* path, int64_t in, int64_t out) {
    return nn::add_layer(*this, path, std::make_shared<nn::Linear>(in, out));
  };
  const auto norm = [&](const char* path) {
    return nn::add_layer(*this, path, std::make_shared<nn::LayerNorm>(width, config.layer_norm_eps));
  };
  query_ = linear("attention.self.query", width, width);
  key_ = linear("attention.self.key", width, width);
  value_ = linear("attention.self.value", width, width);
  attention_output_ = linear("attention.output.dense", width, width);
  attention_norm_ = norm("attention.output.LayerNorm");
  intermediate_ = linear("intermediate.dense", width, wide);
  output_ = linear("output.dense", wide, width);
  output_norm_ = norm("output.LayerNorm");
}

Tensor BertLayer::attention(const Tensor& x, const Tensor& wanted_x, const nn::PackedLayout& layout,
                            const nn::PackedLayout& wanted, const nn::Context& context) const {
  Tensor q, k, v;
  if (wanted.tokens == layout.tokens) {
    const auto all = nn::linears(x, {query_->map(), key_->map(), value_->map()});
    q = all[0], k = all[1], v = all[2];
  } else {
    const auto all = nn::linears(x, {key_->map(), value_->map()});
    q = query_->forward(wanted_x), k = all[0], v = all[1];
  }
  const auto split_heads = [&](const Tensor& rows) { return rows.view({rows.size(0), heads_, head_width_}); };
  return nn::packed_attention(split_heads(q), split_heads(k), split_heads(v), wanted, layout,
                              attention_dropout_, first_site_, context);
}

Tensor BertLayer::forward(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                          const nn::Context& context) const {
  const Tensor wanted_x = wanted.tokens == layout.tokens ? x : x.index_select(0, layout.first_rows());
  const Tensor attended = attention(x, wanted_x, layout, wanted, context);
  const Tensor middle =
      nn::linear_dropout_add_norm(attended, attention_output_->map(), wanted_x, attention_norm_->all(),
                                  hidden_dropout_, first_site_ + 1, wanted, context);
  return nn::mlp_dropout_add_norm(middle, intermediate_->map(), activation_, output_->map(),
                                  output_norm_->all(), hidden_dropout_, first_site_ + 2, wanted, context);
}

BertEmbeddings::BertEmbeddings(const BertConfig& config, bool sparse_words)
    : max_positions_(config.max_position_embeddings), dropout_(config.hidden_dropout_prob) {
  const int64_t width = config.hidden_size;
  const auto table = [&](const char* name, int64_t rows, bool sparse = false) {
    return register_module(name, std::make_shared<nn::Embedding>(rows, width, sparse));
  };
  words_ = table("word_embeddings", config.vocab_size, sparse_words);
  positions_ = table("position_embeddings", config.max_position_embeddings);
  token_types_ = table("token_type_embeddings", config.type_vocab_size);
  norm_ = register_module("LayerNorm", std::make_shared<nn::LayerNorm>(width, config.layer_norm_eps));
}

Tensor BertEmbeddings::forward(const Batch& batch, const nn::PackedLayout& layout,
                               const nn::Context& context) const {
  if (layout.max_length > max_positions_) {
    throw DataError(
        "a sequence of {} tokens is longer than the model's max_position_embeddings ({}); set data.max_length to at most that",
        layout.max_length, max_positions_);
  }
  const Tensor summed = nn::embedding_sum(
      {words_->lookup(batch.at("input_ids")), token_types_->lookup(batch.at("token_type_ids")),
       positions_->lookup(layout.position_ids)},
      context);
  return nn::norm_dropout(summed, norm_->all(), dropout_, embedding_site, layout, context);
}

BertModel::BertModel(const BertConfig& config, bool sparse_words, bool with_pooler)
    : embeddings_(register_module("embeddings", nn::make_sharded<BertEmbeddings>(config, sparse_words))) {
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(
        nn::add_layer(*this, "encoder.layer." + std::to_string(i), nn::make_sharded<BertLayer>(config, i)));
  }
  if (!with_pooler) return;
  pooler_ = nn::add_layer(*this, "pooler.dense",
                          std::make_shared<nn::Linear>(config.hidden_size, config.hidden_size));
}

Tensor BertModel::forward(const Batch& batch, const nn::PackedLayout& layout,
                          const nn::Context& context) const {
  Tensor hidden = embeddings_->forward(batch, layout, context);
  for (size_t i = 0; i < layers_.size(); ++i) hidden = run_layer(i, hidden, layout, layout, context);
  return hidden;
}

Tensor BertModel::run_layer(size_t index, const Tensor& hidden, const nn::PackedLayout& layout,
                            const nn::PackedLayout& wanted, const nn::Context& context) const {
  const auto& layer = layers_[index];
  if (!context.recomputes(static_cast<int64_t>(index)))
    return layer->forward(hidden, layout, wanted, context);
  std::vector<Tensor> trainable;
  for (const Tensor& parameter : layer->parameters()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  return nn::activation_checkpoint(
      [layer, layout, wanted, context](const Tensor& x) {
        return layer->forward(x, layout, wanted, context);
      },
      hidden, trainable);
}

Tensor BertModel::forward_first(const Batch& batch, const nn::PackedLayout& layout,
                                const nn::Context& context) const {
  Tensor hidden = embeddings_->forward(batch, layout, context);
  if (layers_.empty()) return hidden.index_select(0, layout.first_rows());
  const nn::PackedLayout first = layout.first_tokens();
  for (size_t i = 0; i < layers_.size(); ++i)
    hidden = run_layer(i, hidden, layout, i + 1 == layers_.size() ? first : layout, context);
  return hidden;
}

Tensor BertModel::pool(const Tensor& first) const { return at::tanh(pooler_->forward(first)); }

}  // namespace stretto
