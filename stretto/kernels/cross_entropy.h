#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// The sum of log(sum(exp(logits))) - logits[label] over rows whose label is not `ignored`. logits [N, C]
// contiguous, on CPU: fp32, fp64, bf16 or fp16 (both computed in fp32); labels [N] int64 in [0, C) or
// `ignored`.
struct CrossEntropy {
  Tensor sum;         // a scalar: fp32, fp64 for fp64
  Tensor normaliser;  // [N, 2], saved for the backward pass
};
CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, int64_t ignored);

// The gradient of logits: grad_sum * (softmax(logits) - one_hot(label)), written to `grad`, which may be the
// logits.
void cross_entropy_backward(double grad_sum, const Tensor& logits, const Tensor& labels, int64_t ignored,
                            const Tensor& normaliser, const Tensor& grad);

// The sum alone, in fp64, and in place of logits its gradient, softmax(logits) - one_hot(label): in one pass
// over memory instead of three, and with half of the exponentials.
double cross_entropy_with_gradient(const Tensor& logits, const Tensor& labels, int64_t ignored);

// The sum with ATen operators and autograd, on any device.
Tensor cross_entropy_reference(const Tensor& logits, const Tensor& labels, int64_t ignored);

}  // namespace stretto::kernels
