#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Rotary position embedding (Su et al. 2021) of x [T, heads, D], fp32, fp64 or bf16 (computed in fp32), on
// CPU: of each head the columns i and R / 2 + i are turned by the angle i of the row, for i < R / 2; columns
// from R on stay. cosines and sines [T, R / 2], fp32 (fp64 for fp64), of all angles. `back`: by the negative
// angles, as gradients are.
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back = false);

// The same with ATen operators and autograd.
Tensor rotate_reference(const Tensor& x, const Tensor& cosines, const Tensor& sines);

}  // namespace stretto::kernels
