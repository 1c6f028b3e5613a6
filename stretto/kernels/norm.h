#pragma once

#include "stretto/kernels/dropout.h"

namespace stretto::kernels {

// Computes dropout, residual and LayerNorm (Ba et al. 2016) of rows [T, C] in one pass over memory:
//   sum = residual + dropout_before(x + bias)
//   out = dropout_after(weight * (sum - mean) / sqrt(variance + eps) + offset)
// Without an offset it is RMSNorm (Zhang & Sennrich 2019), for which the mean is 0. Without a weight, only
// the sum is computed.
struct Norm {
  Tensor bias, residual;  // [C] and [T, C], or undefined
  Tensor weight, offset;  // [C], or undefined
  double eps = 0;
  Tensor samples, places;  // [T] int64: of each row, see DropoutRows; undefined if both p are 0
  Dropout before, after;
};

struct NormResult {
  Tensor out;         // [T, C]; undefined without a norm
  Tensor sum;         // [T, C]: the input of the normalisation
  Tensor mean, rstd;  // [T] fp32 (fp64 for fp64)
};

// x [T, C]: contiguous, of the same dtype as all tensors in `norm`: fp32, fp64, bf16 or fp16 (both
// computed in fp32), on CPU. x may be overwritten with the sum.
NormResult norm_rows(const Tensor& x, const Norm& norm);

// Sums over rows of parameter gradients, in fp32 (fp64 for fp64), to which the backward pass adds.
struct NormSums {
  Tensor weight, offset;  // [C]; each may be undefined
  Tensor bias;            // [C], undefined without a bias
};

struct NormGradients {
  Tensor residual;  // [T, C]; without a norm `grad` itself
  // [T, C], summed over rows it is the gradient of bias; the residual's tensor if nothing was dropped before
  Tensor x;
};
// grad [T, C]: the gradient of the result. Without a norm the result is the sum, which may then be undefined.
NormGradients norm_rows_backward(const Tensor& grad, const NormResult& result, const Norm& norm,
                                 const NormSums& sums);

// Like norm_rows, with ATen operators and autograd; x is not modified.
Tensor norm_rows_reference(const Tensor& x, const Norm& norm);

}  // namespace stretto::kernels
