#pragma once

#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// Copies `in` to `out` and rotates the pairs of columns (i, half + i) of each head by the row's angle i, for
// i < half. Rows are heads * width numbers.
template <class T>
struct RotaryCall {
  int64_t rows, heads, width, half;
  const Real<T>*cosines, *sines;  // [rows, half]
  Real<T> direction;              // 1, or -1 for the inverse rotation
  const T* in;
  T* out;
};
void rotary_loop(const RotaryCall<float>& call);
void rotary_loop(const RotaryCall<Bf16>& call);
void rotary_loop(const RotaryCall<double>& call);

}  // namespace stretto::kernels
