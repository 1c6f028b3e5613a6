#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// Whether the parameter's gradient lies in a buffer that the backward of a layer adds to itself. The undefined tensor it
// then returns tells autograd that nothing is left; hooks on the parameter run all the same.
inline bool has_gradient_buffer(const Tensor& parameter) {
  return parameter.is_leaf() && parameter.grad().defined();
}

// Where a backward pass adds up the gradient of one parameter: its buffer, where there is one of the type of the sums.
class ParameterGradient {
 public:
  // `sum_type`: of the sums. An unneeded gradient is added up and forgotten; an undefined parameter has no sum.
  ParameterGradient(const Tensor& parameter, at::ScalarType sum_type, bool needed)
      : parameter_(parameter), needed_(needed && parameter.defined()) {
    if (!parameter.defined()) return;
    const bool direct = needed && has_gradient_buffer(parameter) &&
                        parameter.grad().scalar_type() == sum_type && parameter.grad().is_contiguous();
    in_buffer_ = direct;
    sum_ = direct ? parameter.grad() : at::zeros(parameter.sizes(), parameter.options().dtype(sum_type));
  }

  const Tensor& sum() const { return sum_; }

  // What the backward pass returns to autograd.
  Tensor result() const { return in_buffer_ || !needed_ ? Tensor() : sum_.to(parameter_.scalar_type()); }

 private:
  Tensor parameter_, sum_;
  bool needed_, in_buffer_ = false;
};

}  // namespace stretto::nn
