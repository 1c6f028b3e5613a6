#include "stretto/nn/losses.h"

#include "stretto/base/error.h"

namespace stretto::nn {
namespace {

// Converts to the dtype in which losses are computed.
Tensor for_loss(const Tensor& values) {
  return values.scalar_type() == at::kDouble ? values : values.to(at::kFloat);
}

}  // namespace

Loss cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options,
                   const Context& context) {
  if (!options.class_weights.defined() && options.label_smoothing == 0)
    return cross_entropy(logits, labels, context);
  // Checks shapes and labels.
  const Loss plain = cross_entropy(logits.detach(), labels, context);
  const Tensor values = for_loss(logits);
  const Tensor weights = options.class_weights.defined() ? options.class_weights.to(values) : Tensor();
  constexpr int64_t ignored = -100;
  const Tensor sum =
      at::cross_entropy_loss(values, labels, weights, at::Reduction::Sum, ignored, options.label_smoothing);
  if (!weights.defined()) return {sum, plain.count};
  const Tensor used = labels.masked_select(labels.ne(ignored));
  return {sum,
          options.class_weights.to(at::kDouble).to(used.device()).index_select(0, used).sum().item<double>()};
}

Loss squared_error(const Tensor& predicted, const Tensor& wanted) {
  if (predicted.dim() != 2 || predicted.size(1) != 1 || wanted.dim() != 1 ||
      wanted.size(0) != predicted.size(0)) {
    throw ShapeError("squared_error: predicted {} and wanted {} do not match; expected [N, 1] and [N]",
                     describe(predicted), describe(wanted));
  }
  const Tensor values = for_loss(predicted).squeeze(1);
  return {(values - wanted.to(values)).square().sum(), static_cast<double>(wanted.numel())};
}

Loss binary_cross_entropy(const Tensor& logits, const Tensor& wanted, const Tensor& positive_weights) {
  if (logits.dim() != 2 || wanted.sizes() != logits.sizes()) {
    throw ShapeError("binary_cross_entropy: logits {} and wanted {} do not match; expected [N, C] for both",
                     describe(logits), describe(wanted));
  }
  const Tensor values = for_loss(logits);
  const Tensor weights = positive_weights.defined() ? positive_weights.to(values) : Tensor();
  return {at::binary_cross_entropy_with_logits(values, wanted.to(values), {}, weights, at::Reduction::Sum),
          static_cast<double>(wanted.numel())};
}

}  // namespace stretto::nn
