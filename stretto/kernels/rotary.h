#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Applies rotary position embedding (Su et al. 2021) to x [T, heads, D], fp32, fp64, bf16 or fp16 (both
// computed in fp32), on CPU: in each head, the columns i and R / 2 + i are rotated by the row's angle i, for
// i < R / 2; the columns from R on are unchanged. cosines and sines [T, R / 2], fp32 (fp64 for fp64), of all
// angles. `back`: rotates by the negative angles, as for gradients.
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back = false);

// Like rotate(), with ATen operators and autograd.
Tensor rotate_reference(const Tensor& x, const Tensor& cosines, const Tensor& sines);

}  // namespace stretto::kernels
