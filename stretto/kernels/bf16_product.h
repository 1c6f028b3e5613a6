#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Whether this libtorch brings MKL's product of bf16 matrices into an fp32 one.
bool has_bf16_product();

// sum += a^T b, every number of the sum rounded once. sum [m, n] fp32, a [k, m] and b [k, n] bf16, all contiguous, on CPU.
// ATen's product rounds to bf16 and has to be added in a second pass. REQUIRES: has_bf16_product().
void add_bf16_product(const Tensor& sum, const Tensor& a, const Tensor& b);

}  // namespace stretto::kernels
