#pragma once

#include "stretto/kernels/activation_type.h"
#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// out = activation(in + bias) * factor; backward: also grad *= factor * activation'(in + bias), its sum over
// rows, and grad_factor = grad * activation(in + bias). out may be in, and grad_factor factor.
template <class T>
struct ActivationCall {
  Activation activation;
  int64_t rows, width;
  const T *in, *bias, *factor;  // bias and factor may be null
  T* out;
  T* grad;             // null for the forward pass
  T* grad_factor;      // null without a factor
  Real<T>* grad_bias;  // [width], added to; null without bias
};
void activation_loop(const ActivationCall<float>& call);
void activation_loop(const ActivationCall<Bf16>& call);
void activation_loop(const ActivationCall<double>& call);

}  // namespace stretto::kernels
