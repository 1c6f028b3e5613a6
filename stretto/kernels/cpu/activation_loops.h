#pragma once

#include "stretto/kernels/cpu/numbers.h"
#include "stretto/kernels/curve.h"

namespace stretto::kernels {

// out = curve(in + bias) * factor; backward: grad_in = grad_out * factor * curve'(in + bias), its sum over
// rows, and grad_factor = grad_out * curve(in + bias).
template <class T>
struct ActivationCall {
  Curve curve;
  int64_t rows, width;
  const T *in, *bias, *factor;  // bias and factor may be null
  T* out;
  // Given for the backward pass; null for the forward pass, which writes out.
  const T* grad_out;
  T* grad_in;
  T* grad_factor;      // null without a factor
  Real<T>* grad_bias;  // [width], added to; null without bias
};
void activation_loop(const ActivationCall<float>& call);
void activation_loop(const ActivationCall<Bf16>& call);
void activation_loop(const ActivationCall<double>& call);

}  // namespace stretto::kernels
