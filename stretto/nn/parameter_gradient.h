#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// Whether the parameter has a gradient buffer that the backward of a layer accumulates into. It then returns
// an undefined tensor, so that autograd has nothing to accumulate; hooks on the parameter run nevertheless.
inline bool has_gradient_buffer(const Tensor& parameter) {
  return parameter.is_leaf() && parameter.grad().defined();
}

// The tensor in which a backward pass accumulates one parameter's gradient: its gradient buffer if that has
// the dtype of the sums, else a temporary.
class ParameterGradient {
 public:
  // `sum_type`: the dtype of the sums. A gradient that is not needed is discarded; an undefined parameter has
  // no sum.
  ParameterGradient(const Tensor& parameter, at::ScalarType sum_type, bool needed)
      : parameter_(parameter), needed_(needed && parameter.defined()) {
    if (!parameter.defined()) return;
    const bool direct = needed && has_gradient_buffer(parameter) &&
                        parameter.grad().scalar_type() == sum_type && parameter.grad().is_contiguous();
    in_buffer_ = direct;
    sum_ = direct ? parameter.grad() : at::zeros(parameter.sizes(), parameter.options().dtype(sum_type));
  }

  const Tensor& sum() const { return sum_; }

  // The value that the backward pass returns to autograd.
  Tensor result() const { return in_buffer_ || !needed_ ? Tensor() : sum_.to(parameter_.scalar_type()); }

 private:
  Tensor parameter_, sum_;
  bool needed_, in_buffer_ = false;
};

}  // namespace stretto::nn
