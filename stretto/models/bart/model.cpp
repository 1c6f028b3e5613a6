#include "stretto/models/bart/model.h"

namespace stretto {
namespace {

constexpr double bart_norm_eps = 1e-5;   // torch's default, which no config.json of BART changes
constexpr uint64_t embedding_sites = 2;  // of the encoder, then of the decoder; the layers' sites follow

AttentionNames attention_names(const std::string& attention) {
  return {attention + ".q_proj", attention + ".k_proj", attention + ".v_proj", attention + ".out_proj",
          attention + "_layer_norm"};
}

AttentionOptions attention_options(const BartConfig& config, int64_t heads, uint64_t site,
                                   const nn::TensorParallel& ranks, bool causal = false) {
  return {.width = config.d_model,
          .heads = heads,
          .norm_eps = bart_norm_eps,
          .dropout = config.dropout,
          .attention_dropout = config.attention_dropout,
          .first_site = site,
          .causal = causal,
          .ranks = ranks};
}

MlpOptions mlp_options(const BartConfig& config, int64_t inner, uint64_t site,
                       const nn::TensorParallel& ranks) {
  return {.width = config.d_model,
          .inner = inner,
          .norm_eps = bart_norm_eps,
          .dropout = config.dropout,
          .activation_dropout = config.activation_dropout,
          .first_site = site,
          .activation = nn::activation(config.activation_function),
          .ranks = ranks};
}

// Each sequence shifted right by one token, after `start`: the decoder's input for predicting the sequence.
Tensor shifted_right(const Tensor& ids, int64_t start, const nn::PackedLayout& layout) {
  return ids.roll(1).index_fill(0, layout.first_rows(), start);
}

}  // namespace

BartEncoderLayer::BartEncoderLayer(const BartConfig& config, uint64_t first_site,
                                   const nn::TensorParallel& ranks)
    : attention_(*this, attention_names("self_attn"),
                 attention_options(config, config.encoder_attention_heads, first_site, ranks)),
      mlp_(*this, {"fc1", "fc2", "final_layer_norm"},
           mlp_options(config, config.encoder_ffn_dim, first_site + 2, ranks)) {}

Tensor BartEncoderLayer::forward(const Tensor& x, const nn::PackedLayout& layout,
                                 const nn::Context& context) const {
  return mlp_.forward(attention_.forward(x, layout, layout, context), layout, context);
}

BartDecoderLayer::BartDecoderLayer(const BartConfig& config, uint64_t first_site,
                                   const nn::TensorParallel& ranks)
    : self_attention_(*this, attention_names("self_attn"),
                      attention_options(config, config.decoder_attention_heads, first_site, ranks,
                                        /*causal=*/true)),
      cross_attention_(*this, attention_names("encoder_attn"),
                       attention_options(config, config.decoder_attention_heads, first_site + 2, ranks)),
      mlp_(*this, {"fc1", "fc2", "final_layer_norm"},
           mlp_options(config, config.decoder_ffn_dim, first_site + 4, ranks)) {}

Tensor BartDecoderLayer::forward(const Tensor& x, const Tensor& encoded, const nn::PackedLayout& layout,
                                 const nn::PackedLayout& wanted, const nn::Context& context) const {
  const Tensor own = self_attention_.forward(x, layout, wanted, context);
  return mlp_.forward(cross_attention_.forward_to(encoded, own, layout, wanted, context), wanted, context);
}

BartPositions::BartPositions(const BartConfig& config, uint64_t site)
    : max_positions_(config.max_position_embeddings), dropout_(config.dropout), site_(site) {
  positions_ = register_module(
      "embed_positions", std::make_shared<nn::Embedding>(
                             config.max_position_embeddings + BartConfig::unused_positions, config.d_model));
  norm_ =
      register_module("layernorm_embedding", std::make_shared<nn::LayerNorm>(config.d_model, bart_norm_eps));
}

Tensor BartPositions::forward(const nn::VocabularyEmbedding& words, const Tensor& ids,
                              const nn::PackedLayout& layout, const nn::Context& context) const {
  require_length(layout, max_positions_);
  const Tensor summed =
      words.sum(ids, {positions_->lookup(layout.position_ids + BartConfig::unused_positions)}, context);
  return nn::norm_dropout(summed, norm_->all(), dropout_, site_, layout, context);
}

BartModel::BartModel(const BartConfig& config, const nn::TensorParallel& ranks)
    : config_(config), ranks_(ranks) {
  words_ = register_module("shared", std::make_shared<nn::VocabularyEmbedding>(
                                         config.vocab_size, config.d_model, ranks, /*sparse=*/true));
  encoder_positions_ = register_module("encoder", std::make_shared<BartPositions>(config, 0));
  decoder_positions_ = register_module("decoder", std::make_shared<BartPositions>(config, 1));
  uint64_t site = embedding_sites;
  for (int64_t i = 0; i < config.encoder_layers; ++i, site += BartEncoderLayer::sites) {
    encoder_.push_back(nn::add_layer(*this, "encoder.layers." + std::to_string(i),
                                     nn::make_sharded<BartEncoderLayer>(config, site, ranks)));
  }
  for (int64_t i = 0; i < config.decoder_layers; ++i, site += BartDecoderLayer::sites) {
    decoder_.push_back(nn::add_layer(*this, "decoder.layers." + std::to_string(i),
                                     nn::make_sharded<BartDecoderLayer>(config, site, ranks)));
  }
}

Tensor BartModel::encode(const Tensor& embedded, const nn::PackedLayout& layout,
                         const nn::Context& context) const {
  Tensor hidden = embedded;
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const auto& layer = encoder_[i];
    hidden = run_block(*layer, static_cast<int64_t>(i), context, {hidden},
                       [layer, layout, context](const nn::Carry& carry) {
                         return layer->forward(carry[0], layout, context);
                       });
  }
  return hidden;
}

Tensor BartModel::decode(size_t index, const Tensor& x, const Tensor& encoded, const nn::PackedLayout& layout,
                         const nn::PackedLayout& wanted, const nn::Context& context) const {
  const auto& layer = decoder_[index];
  const auto number = static_cast<int64_t>(encoder_.size() + index);
  return run_block(*layer, number, context, {x, encoded},
                   [layer, layout, wanted, context](const nn::Carry& carry) {
                     return layer->forward(carry[0], carry[1], layout, wanted, context);
                   });
}

Tensor BartModel::forward_last(const Batch& batch, const nn::PackedLayout& layout,
                               const nn::Context& context) const {
  const Tensor& ids = batch.at("input_ids");
  const RowsBetweenBlocks rows(ranks_, layout, context), last(ranks_, layout.last_tokens(), context);
  const Tensor encoded =
      encode(rows.divide(encoder_positions_->forward(*words_, ids, layout, context)), rows.layout(), context);
  Tensor hidden = rows.divide(decoder_positions_->forward(
      *words_, shifted_right(ids, config_.decoder_start_token_id, layout), layout, context));
  for (size_t i = 0; i < decoder_.size(); ++i) {
    hidden = decode(i, hidden, encoded, rows.layout(),
                    i + 1 == decoder_.size() ? last.layout() : rows.layout(), context);
  }
  return last.join(hidden);
}

}  // namespace stretto
