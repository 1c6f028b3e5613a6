#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// The three products of a linear map y = x W^T, on matrices of one float type.

// `x` as it enters products: bf16 on CPUs without bf16 instructions becomes fp32 (the same result once it is rounded, at
// usable speed), everything else stays. Worth keeping where x enters several products.
Tensor operand(const Tensor& x);

// x W^T [T, out], of W's type. x [T, in] is an operand, weight [out, in] the parameter.
Tensor product(const Tensor& x, const Tensor& weight);

// y W [T, in], of W's type: the gradient of x. grad [T, out] is an operand.
Tensor input_gradient(const Tensor& grad, const Tensor& weight);

// sum += y W: where x enters several maps.
void add_input_gradient(const Tensor& sum, const Tensor& grad, const Tensor& weight);

// y^T x [out, in], the gradient of W: added to its buffer (in fp32 also for bf16 weights, so that nothing but the single
// product is rounded), or returned where it has none. Both are operands.
Tensor weight_gradient(const Tensor& weight, const Tensor& grad, const Tensor& x);

// The sum of rows of y [T, out], likewise.
Tensor bias_gradient(const Tensor& bias, const Tensor& grad);

}  // namespace stretto::nn
