#pragma once

#include "stretto/kernels/curve.h"
#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// curve(x + bias) * factor (Shazeer 2020). x and factor [T, C] contiguous, bias [C], of one type: fp32, fp64
// or bf16 (computed in fp32), on CPU; bias and factor may be undefined.
Tensor activate(Curve curve, const Tensor& x, const Tensor& bias, const Tensor& factor = {});

// The gradients of x and of factor (undefined without one). The sum over rows of x's is added to bias_sum,
// fp32 (fp64 for fp64), undefined without a bias.
struct ActivationGradients {
  Tensor x, factor;
};
ActivationGradients activate_backward(Curve curve, const Tensor& grad, const Tensor& x, const Tensor& bias,
                                      const Tensor& factor, const Tensor& bias_sum);

// Like activate, with ATen operators and autograd.
Tensor activate_reference(Curve curve, const Tensor& x, const Tensor& bias, const Tensor& factor = {});

}  // namespace stretto::kernels
