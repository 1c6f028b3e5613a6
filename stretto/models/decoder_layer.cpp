#include "stretto/models/decoder_layer.h"

namespace stretto {

std::shared_ptr<nn::Norm> add_norm(torch::nn::Module& root, const std::string& path, int64_t width, bool rms,
                                   double eps) {
  if (rms) return nn::add_layer(root, path, std::make_shared<nn::RmsNorm>(width, eps));
  return nn::add_layer(root, path, std::make_shared<nn::LayerNorm>(width, eps));
}

DecoderLayer::DecoderLayer(const DecoderLayerNames& names, const DecoderLayerOptions& options)
    : options_(options) {
  const int64_t width = options.width, rows = options.heads * options.head_width,
                key_rows = options.key_heads * options.head_width;
  const auto linear = [&](const std::string& name, int64_t in, int64_t out, bool bias) {
    return nn::add_layer(*this, name,
                         std::make_shared<nn::Linear>(
                             in, out, nn::LinearOptions{.bias = bias, .transposed = options.transposed}));
  };
  attention_norm_ = add_norm(*this, names.attention_norm, width, options.rms_norm, options.norm_eps);
  if (names.key.empty()) {
    query_ = linear(names.query, width, 3 * rows, options.query_bias);
  } else {
    query_ = linear(names.query, width, rows, options.query_bias);
    key_ = linear(names.key, width, key_rows, options.query_bias);
    value_ = linear(names.value, width, key_rows, options.query_bias);
  }
  output_ = linear(names.output, rows, width, options.attention_output_bias);
  if (!names.query_norm.empty()) {
    query_norm_ = add_norm(*this, names.query_norm, options.head_width, /*rms=*/true, options.norm_eps);
    key_norm_ = add_norm(*this, names.key_norm, options.head_width, /*rms=*/true, options.norm_eps);
  }
  mlp_norm_ = add_norm(*this, names.mlp_norm, width, options.rms_norm, options.norm_eps);
  in_ = linear(names.in, width, options.inner, options.mlp_bias);
  if (!names.factor.empty()) factor_ = linear(names.factor, width, options.inner, options.mlp_bias);
  out_ = linear(names.out, options.inner, width, options.mlp_bias);
}

// [T, heads * head_width] of the normalised states x.
Tensor DecoderLayer::attend(const Tensor& x, const nn::PackedLayout& layout, const nn::Rotation& rotation,
                            const nn::Context& context) const {
  const double p = options_.attention_dropout;
  if (!key_) {
    return nn::joined_attention(query_->forward(x), options_.heads, layout, p, options_.first_site, context,
                                options_.rule);
  }
  const auto all = nn::linears(x, {query_->map(), key_->map(), value_->map()});
  const auto heads = [&](const Tensor& rows) { return rows.view({rows.size(0), -1, options_.head_width}); };
  const auto positioned = [&](const Tensor& rows, const std::shared_ptr<nn::Norm>& norm) {
    Tensor each = heads(rows);
    if (norm) each = nn::norm(each.flatten(0, 1), norm->all(), context).view(each.sizes());
    return nn::rotate(each, rotation, context);
  };
  return nn::packed_attention(positioned(all[0], query_norm_), positioned(all[1], key_norm_), heads(all[2]),
                              layout, layout, p, options_.first_site, context, options_.rule);
}

Tensor DecoderLayer::forward(const Tensor& x, const nn::PackedLayout& layout, const nn::Rotation& rotation,
                             const nn::Context& context) const {
  const Tensor attended = attend(nn::norm(x, attention_norm_->all(), context), layout, rotation, context);
  const Tensor middle = nn::linear_dropout_add(attended, output_->map(), x, options_.dropout,
                                               options_.first_site + 1, layout, context);
  const nn::Gate gate = {in_->map(), options_.activation, factor_ ? factor_->map() : nn::Affine{}};
  return nn::mlp_dropout_add(nn::norm(middle, mlp_norm_->all(), context), gate, out_->map(), middle,
                             options_.dropout, options_.first_site + 2, layout, context);
}

}  // namespace stretto
