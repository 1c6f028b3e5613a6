#include "stretto/models/blocks.h"

#include "stretto/base/error.h"
#include "stretto/base/range.h"
#include "stretto/model_config/outline.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {
namespace {

// `together`: outputs, or inputs, that stay on one rank.
std::shared_ptr<nn::Linear> add_column(torch::nn::Module& layer, const std::string& name, int64_t in,
                                       int64_t out, const nn::TensorParallel& ranks, int64_t together = 1) {
  return nn::add_layer(
      layer, name,
      std::make_shared<nn::ColumnLinear>(in, out, ranks, nn::ColumnOptions{.together = together}));
}

std::shared_ptr<nn::Linear> add_row(torch::nn::Module& layer, const std::string& name, int64_t in,
                                    int64_t out, const nn::TensorParallel& ranks, int64_t together = 1) {
  return nn::add_layer(layer, name,
                       std::make_shared<nn::RowLinear>(in, out, ranks, nn::LinearOptions{}, together));
}

std::shared_ptr<nn::Norm> add_norm(torch::nn::Module& layer, const std::string& name, int64_t width,
                                   double eps, const nn::TensorParallel& ranks) {
  return nn::add_layer(layer, name, std::make_shared<nn::LayerNormBetweenLayers>(width, eps, ranks));
}

}  // namespace

void require_divisible_heads(int64_t heads, int64_t key_heads, const nn::TensorParallel& ranks) {
  if (heads % ranks.size() == 0 && (key_heads % ranks.size() == 0 || ranks.size() % key_heads == 0)) return;
  throw UnevenHeads("{}", uneven_heads(heads, key_heads, ranks.size()));
}

void require_length(const nn::PackedLayout& layout, int64_t max_length) {
  if (layout.max_length <= max_length) return;
  throw DataError(
      "a sequence of {} tokens is longer than the model's max_position_embeddings allows ({}); cut it to that many",
      layout.max_length, max_length);
}

Tensor run_block(const torch::nn::Module& block, int64_t index, const nn::Context& context,
                 const nn::Carry& carry, const std::function<Tensor(const nn::Carry&)>& forward) {
  if (!context.recomputes(index)) return forward(carry);
  std::vector<Tensor> trainable;
  for (const Tensor& parameter : block.parameters()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  return nn::activation_checkpoint(forward, carry, trainable);
}

RowsBetweenBlocks::RowsBetweenBlocks(const nn::TensorParallel& ranks, const nn::PackedLayout& layout,
                                     const nn::Context& context)
    : ranks_(context.cache == nullptr ? ranks : ranks.with_whole_rows()),
      tokens_(layout.tokens),
      layout_(layout.padded_to_multiple_of(ranks_.divides_rows() ? ranks_.size() : 1)) {}

Tensor RowsBetweenBlocks::divide(const Tensor& all) const {
  return nn::own_rows(padded_rows(all, layout_.tokens), ranks_);
}

Tensor RowsBetweenBlocks::join(const Tensor& rows) const {
  return ranks_.divides_rows() ? nn::join_rows(rows, ranks_).slice(0, 0, tokens_) : rows;
}

nn::Affine map_for(const nn::Linear& map, const nn::Context& context) {
  nn::Affine affine = map.map();
  affine.of_rows = affine.of_rows && context.cache == nullptr;
  return affine;
}

// Zeros would be a constant row, of which norms have large gradients.
Tensor padded_rows(const Tensor& x, int64_t rows) {
  const int64_t missing = rows - x.size(0);
  if (missing == 0) return x;
  return at::cat({x, x.detach().slice(0, x.size(0) - 1).expand({missing, x.size(1)})});
}

Tensor rows_of(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted) {
  if (wanted.has_rows_of(layout)) return x;
  return x.index_select(0, wanted.are_last ? layout.last_rows() : layout.first_rows());
}

AttentionBlock::AttentionBlock(torch::nn::Module& layer, const AttentionNames& names,
                               const AttentionOptions& options)
    : options_(options),
      head_width_(options.width / options.heads),
      query_(add_column(layer, names.query, options.width, options.width, options.ranks, head_width_)),
      key_(add_column(layer, names.key, options.width, options.width, options.ranks, head_width_)),
      value_(add_column(layer, names.value, options.width, options.width, options.ranks, head_width_)),
      output_(add_row(layer, names.output, options.width, options.width, options.ranks, head_width_)),
      norm_(add_norm(layer, names.norm, options.width, options.norm_eps, options.ranks)) {
  require_divisible_heads(options.heads, options.heads, options.ranks);
}

Tensor AttentionBlock::forward(const Tensor& x, const nn::PackedLayout& layout,
                               const nn::PackedLayout& wanted, const nn::Context& context) const {
  if (!wanted.has_rows_of(layout)) {
    if (options_.ranks.divides_rows()) return forward_to_own(x, layout, wanted, context);
    return forward_to(x, rows_of(x, layout, wanted), layout, wanted, context);
  }
  const auto all = nn::linears(x, {query_->map(), key_->map(), value_->map()});
  return finish(all[0], all[1], all[2], x, layout, wanted, context);
}

Tensor AttentionBlock::forward_to(const Tensor& source, const Tensor& x, const nn::PackedLayout& layout,
                                  const nn::PackedLayout& wanted, const nn::Context& context) const {
  const auto of_source = nn::linears(source, {key_->map(), value_->map()});
  return finish(query_->forward(x), of_source[0], of_source[1], x, layout, wanted, context);
}

// Like forward_to(), for this rank's rows of `wanted`: x are its rows of `layout`. All ranks need the rows of
// `wanted` for queries, so all rows are joined first; maps then take them as they are.
Tensor AttentionBlock::forward_to_own(const Tensor& x, const nn::PackedLayout& layout,
                                      const nn::PackedLayout& wanted, const nn::Context& context) const {
  const nn::TensorParallel& ranks = options_.ranks;
  const auto of_joined = [](const nn::Linear& layer) {
    nn::Affine map = layer.map();
    map.outputs_over = nullptr;  // join_rows_to_parts sums the ranks' gradients
    return map;
  };
  const Tensor source = nn::join_rows_to_parts(x, *ranks.ranks);
  const Tensor rows = padded_rows(rows_of(source, layout, wanted), wanted.tokens);
  const auto of_source = nn::linears(source, {of_joined(*key_), of_joined(*value_)});
  const int64_t count = wanted.tokens / ranks.size();
  return finish(nn::linear(rows, of_joined(*query_)), of_source[0], of_source[1],
                rows.slice(0, ranks.position() * count, (ranks.position() + 1) * count), layout, wanted,
                context);
}

Tensor AttentionBlock::finish(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& x,
                              const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                              const nn::Context& context) const {
  const auto split_heads = [&](const Tensor& rows) { return rows.view({rows.size(0), -1, head_width_}); };
  const Tensor attended = nn::packed_attention(
      split_heads(q), split_heads(k), split_heads(v), wanted, layout, options_.attention_dropout,
      options_.first_site, context,
      {.causal = options_.causal, .first_head = options_.ranks.part(options_.heads).begin});
  return nn::linear_dropout_add_norm(attended, output_->map(), x, norm_->all(), options_.dropout,
                                     options_.first_site + 1, wanted, context);
}

MlpBlock::MlpBlock(torch::nn::Module& layer, const MlpNames& names, const MlpOptions& options)
    : options_(options),
      in_(add_column(layer, names.in, options.width, options.inner, options.ranks)),
      out_(add_row(layer, names.out, options.inner, options.width, options.ranks)),
      norm_(add_norm(layer, names.norm, options.width, options.norm_eps, options.ranks)) {}

Tensor MlpBlock::forward(const Tensor& x, const nn::PackedLayout& layout, const nn::Context& context) const {
  const uint64_t site = options_.first_site;
  if (options_.activation_dropout == 0 || !context.training) {
    return nn::mlp_dropout_add_norm(x, in_->map(), options_.activation, out_->map(), norm_->all(),
                                    options_.dropout, site, layout, context);
  }
  const Tensor active = nn::activate(in_->forward(x), options_.activation);
  const Tensor kept = nn::dropout(active, options_.activation_dropout, site, layout, context,
                                  options_.ranks.part(options_.inner).begin);
  return nn::linear_dropout_add_norm(kept, out_->map(), x, norm_->all(), options_.dropout, site + 1, layout,
                                     context);
}

}  // namespace stretto
