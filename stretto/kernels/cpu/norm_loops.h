#pragma once

#include "stretto/kernels/cpu/dropout_loops.h"
#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// sum = residual + drop_before(sum + bias); out = drop_after(weight * (sum - mean) * rstd + offset), row by
// row. The mean is 0 without an offset; without a weight there is the sum only.
template <class T>
struct NormCall {
  int64_t rows, width;
  const T *bias, *residual;  // or null
  const T *weight, *offset;  // or null
  double eps;
  const int64_t *samples, *places;  // of the rows, for dropout
  Drop before, after;
  T* sum;  // in: the input to add to the residual; out: the input of the normalisation
  T* out;
  Real<T>*mean, *rstd;  // [rows]
  // Given for the backward pass, which reads sum, mean and rstd; null for the forward pass, which writes
  // them.
  const T* grad_out;
  T* grad_sum;    // gradient of the residual; null without a weight, when it equals grad_out
  T* grad_input;  // of the sum's input: grad_sum after drop_before; null if nothing is dropped
  Real<T>*grad_weight, *grad_offset, *grad_bias;  // [width], added to; null if not needed
};
void norm_loop(const NormCall<float>& call);
void norm_loop(const NormCall<Bf16>& call);
void norm_loop(const NormCall<double>& call);

}  // namespace stretto::kernels
