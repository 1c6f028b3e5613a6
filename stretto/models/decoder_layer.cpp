#include "stretto/models/decoder_layer.h"

#include <algorithm>

#include "stretto/base/range.h"
#include "stretto/models/blocks.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

std::shared_ptr<nn::Norm> add_norm(torch::nn::Module& root, const std::string& path, int64_t width, bool rms,
                                   double eps, const nn::TensorParallel& ranks) {
  if (rms) return nn::add_layer(root, path, std::make_shared<nn::RmsNormBetweenLayers>(width, eps, ranks));
  return nn::add_layer(root, path, std::make_shared<nn::LayerNormBetweenLayers>(width, eps, ranks));
}

DecoderLayer::DecoderLayer(const DecoderLayerNames& names, const DecoderLayerOptions& options)
    : options_(options) {
  const int64_t width = options.width, rows = options.heads * options.head_width,
                key_rows = options.key_heads * options.head_width;
  const nn::TensorParallel& ranks = options.ranks;
  require_divisible_heads(options.heads, options.key_heads, ranks);
  options_.heads /= ranks.size();
  options_.rule.first_head = ranks.part(options.heads).begin;
  const auto linear_options = [&](bool bias) {
    return nn::LinearOptions{.bias = bias, .transposed = options.transposed};
  };
  const auto column = [&](const std::string& name, int64_t out, bool bias, int64_t together, int64_t maps = 1,
                          int copies = 1) -> std::shared_ptr<nn::Linear> {
    const nn::ColumnOptions column_options = {linear_options(bias), maps, together, copies};
    return nn::add_layer(*this, name, std::make_shared<nn::ColumnLinear>(width, out, ranks, column_options));
  };
  const auto row = [&](const std::string& name, int64_t in, bool bias,
                       int64_t together) -> std::shared_ptr<nn::Linear> {
    return nn::add_layer(*this, name,
                         std::make_shared<nn::RowLinear>(in, width, ranks, linear_options(bias), together));
  };
  attention_norm_ = add_norm(*this, names.attention_norm, width, options.rms_norm, options.norm_eps, ranks);
  if (names.key.empty()) {
    query_ = column(names.query, 3 * rows, options.query_bias, options.head_width, /*maps=*/3);
  } else {
    // With fewer heads of keys and values than ranks, several ranks have the same one.
    const int copies = std::max(1, static_cast<int>(ranks.size() / options.key_heads));
    const auto key_column = [&](const std::string& name) {
      return column(name, key_rows, options.query_bias, options.head_width, /*maps=*/1, copies);
    };
    query_ = column(names.query, rows, options.query_bias, options.head_width);
    key_ = key_column(names.key);
    value_ = key_column(names.value);
  }
  output_ = row(names.output, rows, options.attention_output_bias, options.head_width);
  if (!names.query_norm.empty()) {
    const auto of_head = [&](const std::string& name) -> std::shared_ptr<nn::Norm> {
      return nn::add_layer(*this, name, std::make_shared<nn::RmsNorm>(options.head_width, options.norm_eps));
    };
    query_norm_ = of_head(names.query_norm);
    key_norm_ = of_head(names.key_norm);
  }
  mlp_norm_ = add_norm(*this, names.mlp_norm, width, options.rms_norm, options.norm_eps, ranks);
  in_ = column(names.in, options.inner, options.mlp_bias, 1);
  if (!names.factor.empty()) factor_ = column(names.factor, options.inner, options.mlp_bias, 1);
  out_ = row(names.out, options.inner, options.mlp_bias, 1);
}

// The parameters of a norm of heads, of which each rank has some.
nn::NormParameters DecoderLayer::of_heads(const nn::Norm& norm) const {
  nn::NormParameters all = norm.all();
  if (options_.ranks.divides()) all.weight = nn::to_parts(all.weight, *options_.ranks.ranks);
  return all;
}

// [T, heads * head_width] of the states x, which it normalises.
Tensor DecoderLayer::attend(const Tensor& x, const nn::PackedLayout& layout, const nn::Rotation& rotation,
                            const nn::Context& context) const {
  const double p = options_.attention_dropout;
  std::vector<nn::Affine> maps = {map_for(*query_, context)};
  if (key_) maps.insert(maps.end(), {map_for(*key_, context), map_for(*value_, context)});
  const auto all = nn::norm_linears(x, attention_norm_->all(), maps, context);
  if (!key_)
    return nn::joined_attention(all[0], options_.heads, layout, p, options_.first_site, context,
                                options_.rule);
  const auto heads = [&](const Tensor& rows) { return rows.view({rows.size(0), -1, options_.head_width}); };
  const auto positioned = [&](const Tensor& rows, const std::shared_ptr<nn::Norm>& norm) {
    Tensor each = heads(rows);
    if (norm) each = nn::norm(each.flatten(0, 1), of_heads(*norm), context).view(each.sizes());
    return nn::rotate(each, rotation, context);
  };
  return nn::packed_attention(positioned(all[0], query_norm_), positioned(all[1], key_norm_), heads(all[2]),
                              layout, layout, p, options_.first_site, context, options_.rule);
}

Tensor DecoderLayer::forward(const Tensor& x, const nn::PackedLayout& layout, const nn::Rotation& rotation,
                             const nn::Context& context) const {
  const Tensor attended = attend(x, layout, rotation, context);
  const Tensor middle = nn::linear_dropout_add(attended, map_for(*output_, context), x, options_.dropout,
                                               options_.first_site + 1, layout, context);
  const nn::Gate gate = {map_for(*in_, context), options_.activation,
                         factor_ ? map_for(*factor_, context) : nn::Affine{}};
  return nn::norm_mlp_dropout_add(middle, mlp_norm_->all(), gate, map_for(*out_, context), options_.dropout,
                                  options_.first_site + 2, layout, context);
}

}  // namespace stretto
