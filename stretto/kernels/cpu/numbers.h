#pragma once

#include "stretto/kernels/cpu/half.h"

namespace stretto::kernels {

// The type in which loops over T compute: fp32 for bf16.
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
