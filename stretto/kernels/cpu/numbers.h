#pragma once

#include "stretto/kernels/cpu/half.h"

namespace stretto::kernels {

// The type that loops over T compute in: fp32 for bf16.
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
