#pragma once

#include "stretto/kernels/cpu/half.h"

namespace stretto::kernels {

// What numbers of a type are computed in: sums and elementary functions of bf16 numbers are fp32.
template <class T>
struct Computed {
  using Real = float;
};
template <>
struct Computed<double> {
  using Real = double;
};
template <class T>
using Real = typename Computed<T>::Real;

}  // namespace stretto::kernels
