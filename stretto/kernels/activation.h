#pragma once

#include "stretto/kernels/curve.h"
#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// curve(x + bias). x [T, C] contiguous, bias [C] or undefined, of one type: fp32, fp64 or bf16 (computed in fp32), on CPU.
Tensor activate(Curve curve, const Tensor& x, const Tensor& bias);

// The gradient of x; its sum over rows is added to bias_sum, fp32 (fp64 for fp64), undefined without a bias.
Tensor activate_backward(Curve curve, const Tensor& grad, const Tensor& x, const Tensor& bias,
                         const Tensor& bias_sum);

// The same with ATen operators and autograd.
Tensor activate_reference(Curve curve, const Tensor& x, const Tensor& bias);

}  // namespace stretto::kernels
