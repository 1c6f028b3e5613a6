#pragma once

#include "stretto/kernels/cpu/numbers.h"
#include "stretto/kernels/curve.h"

namespace stretto::kernels {

// out = curve(in + bias); backward: grad_in = grad_out * curve'(in + bias), and its sum over rows.
template <class T>
struct ActivationCall {
  Curve curve;
  int64_t rows, width;
  const T *in, *bias;  // bias may be null
  T* out;
  // Given for the backward pass; null for the forward pass, which writes out.
  const T* grad_out;
  T* grad_in;
  Real<T>* grad_bias;  // [width], added to; null without bias
};
void activation_loop(const ActivationCall<float>& call);
void activation_loop(const ActivationCall<Bf16>& call);
void activation_loop(const ActivationCall<double>& call);

}  // namespace stretto::kernels
