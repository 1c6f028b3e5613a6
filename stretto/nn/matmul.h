#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto {
class Group;
}

namespace stretto::nn {

// The three matmuls of a linear map y = x W^T, all of one float dtype, by the libraries in use
// (kernels/matmul/matmul.h).

// Converts `x` to the dtype of the matmul: on CPUs fp32 for fp16, and for bf16 without bf16 instructions
// (equal after rounding, and much faster), else its own. Reuse the result if x is used in several matmuls.
Tensor operand(const Tensor& x);

// x W^T + bias [T, out], of W's dtype. x [T, in] is an operand, weight [out, in] and bias [out] (or
// undefined) are the parameters. `sum_over`: the ranks over which the result is to be summed, or null.
Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
               const Group* sum_over = nullptr);

// grad W [T, in], of grad's dtype: the gradient of x. grad [T, out] is an operand. `sum_over`: as above.
Tensor input_gradient(const Tensor& grad, const Tensor& weight, const Group* sum_over = nullptr);

// sum += grad W, for an x that several maps use.
void add_input_gradient(const Tensor& sum, const Tensor& grad, const Tensor& weight);

// The weight of the three functions above as [out, in]; a `transposed` parameter is [in, out].
inline Tensor oriented(const Tensor& weight, bool transposed) { return transposed ? weight.t() : weight; }

// grad^T x [out, in], the gradient of W, or x^T grad [in, out] for a `transposed` parameter. It is
// accumulated in W's gradient buffer (in fp32 also for bf16 weights), or returned if there is no buffer. grad
// and x are operands.
Tensor weight_gradient(const Tensor& weight, const Tensor& grad, const Tensor& x, bool transposed = false);

// The sum over rows of grad [T, out], the gradient of the bias; accumulated or returned like weight_gradient.
Tensor bias_gradient(const Tensor& bias, const Tensor& grad);

}  // namespace stretto::nn
