#include "stretto/models/decoder.h"

#include "stretto/base/range.h"
#include "stretto/models/blocks.h"

namespace stretto {
namespace {

constexpr uint64_t words_site = 0;  // of dropout; those of the layers follow

}  // namespace

Decoder::Decoder(DecoderOptions options) : options_(std::move(options)) {
  const int64_t width = options_.layer.width;
  words_ = nn::add_layer(*this, options_.words,
                         std::make_shared<nn::VocabularyEmbedding>(options_.vocab_size, width, ranks(),
                                                                   /*sparse=*/!options_.tied));
  if (!options_.positions.empty())
    positions_ =
        nn::add_layer(*this, options_.positions, std::make_shared<nn::Embedding>(options_.max_length, width));
  for (int64_t i = 0; i < options_.number_of_layers; ++i) {
    DecoderLayerOptions layer = options_.layer;
    layer.rule = options_.rules.at(static_cast<size_t>(i));
    layer.first_site = words_site + 1 + DecoderLayer::sites * static_cast<uint64_t>(i);
    layers_.push_back(nn::add_layer(*this, options_.layers + "." + std::to_string(i),
                                    nn::make_sharded<DecoderLayer>(options_.layer_names, layer)));
  }
  norm_ = add_norm(*this, options_.norm, width, options_.layer.rms_norm, options_.layer.norm_eps, ranks());
  if (!options_.tied) {
    const nn::ColumnOptions head = {.linear = {.bias = false}};
    head_ = register_module("lm_head", std::make_shared<nn::ColumnLinear>(width, options_.vocab_size,
                                                                          ranks().with_whole_rows(), head));
  }
}

nn::Rotation Decoder::angles(const nn::PackedLayout&, at::ScalarType) const { return {}; }

Tensor Decoder::embed(const Batch& batch, const nn::PackedLayout& layout, const nn::Context& context) const {
  const Tensor& ids = batch.at("input_ids");
  if (positions_) require_length(layout, options_.max_length);
  std::vector<nn::Lookup> others;
  if (positions_) others.push_back(positions_->lookup(layout.position_ids));
  Tensor states = words_->sum(ids, std::move(others), context);
  if (options_.padding_row >= 0) {
    const Tensor is_padding = ids.eq(options_.padding_row);
    if (is_padding.any().item<bool>()) states = at::where(is_padding.unsqueeze(1), states.detach(), states);
  }
  return nn::dropout(states, options_.embedding_dropout, words_site, layout, context);
}

nn::Carry Decoder::run(const Range& range, nn::Carry carry, const Batch& batch,
                       const nn::Context& context) const {
  const nn::PackedLayout of_batch(batch);
  const RowsBetweenBlocks rows(ranks(), of_batch, context);
  const nn::PackedLayout& layout = rows.layout();
  if (range.begin == 0) carry = {rows.divide(embed(batch, of_batch, context))};
  const nn::Rotation rotation = angles(layout, carry[0].scalar_type());
  for (int64_t block = std::max<int64_t>(1, range.begin); block < std::min(range.end, blocks() - 1);
       ++block) {
    const auto& layer = layers_[static_cast<size_t>(block - 1)];
    carry = {run_block(*layer, block - 1, context, carry,
                       [layer, layout, rotation, context](const nn::Carry& before) {
                         return layer->forward(before[0], layout, rotation, context);
                       })};
  }
  if (range.end == blocks()) carry = {rows.join(nn::norm(carry[0], norm_->all(), context))};
  return carry;
}

Tensor Decoder::forward(const Batch& batch, const nn::Context& context) const {
  return run({0, blocks()}, {}, batch, context)[0];
}

Loss Decoder::loss(const Tensor& hidden, const Tensor& labels, const nn::Context& context) const {
  if (!ranks().divides()) return nn::linear_cross_entropy(hidden, head(), labels, context);
  const nn::ClassesOfRank classes = {*ranks().ranks, ranks().part(options_.vocab_size).begin,
                                     options_.vocab_size};
  return nn::linear_cross_entropy(hidden, head(), labels, classes, context);
}

Tensor Decoder::logits(const Tensor& rows) const {
  const Tensor own = nn::linear(rows, {.weight = head(), .bias = {}, .outputs_over = ranks().ranks});
  return nn::join_columns(own, options_.vocab_size, ranks());
}

const std::vector<std::string>& Decoder::labels() const {
  static const std::vector<std::string> none;
  return none;
}

}  // namespace stretto
