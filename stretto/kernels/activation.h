#pragma once

#include "stretto/kernels/curve.h"
#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Returns curve(x + bias). x [T, C] contiguous, bias [C] or undefined, of one dtype: fp32, fp64 or bf16
// (computed in fp32), on CPU.
Tensor activate(Curve curve, const Tensor& x, const Tensor& bias);

// Returns the gradient of x and adds its sum over rows to bias_sum, which is fp32 (fp64 for fp64), or
// undefined without a bias.
Tensor activate_backward(Curve curve, const Tensor& grad, const Tensor& x, const Tensor& bias,
                         const Tensor& bias_sum);

// Like activate, with ATen operators and autograd.
Tensor activate_reference(Curve curve, const Tensor& x, const Tensor& bias);

}  // namespace stretto::kernels
