#pragma once

#include "stretto/kernels/activation_type.h"
#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Computes activation(x + bias) * factor (Shazeer 2020). x and factor [T, C] contiguous, bias [C], of one
// dtype: fp32, fp64, bf16 or fp16 (both computed in fp32), on CPU; bias and factor may be undefined.
Tensor activate(Activation activation, const Tensor& x, const Tensor& bias, const Tensor& factor = {});

// The backward pass of activate(). Replaces x by the result, computed again; `grad`, the gradient of the
// result, by the gradient of x, whose sum over rows is added to bias_sum, fp32 (fp64 for fp64), which is
// undefined without a bias; and factor by its gradient.
void activate_backward(Activation activation, const Tensor& grad, const Tensor& x, const Tensor& bias,
                       const Tensor& factor, const Tensor& bias_sum);

// Like activate, with ATen operators and autograd.
Tensor activate_reference(Activation activation, const Tensor& x, const Tensor& bias,
                          const Tensor& factor = {});

}  // namespace stretto::kernels
