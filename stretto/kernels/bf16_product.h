#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Whether this libtorch contains MKL's bf16 matrix product with an fp32 result.
bool has_bf16_product();

// sum += a^T b, each element rounded once. sum [m, n] fp32, a [k, m] and b [k, n] bf16, all contiguous, on CPU.
// ATen's product rounds to bf16 and must be added in a second pass. REQUIRES: has_bf16_product().
void add_bf16_product(const Tensor& sum, const Tensor& a, const Tensor& b);

}  // namespace stretto::kernels
