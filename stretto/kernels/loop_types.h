#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Whether there are loops for the tensor's device and dtype; ATen is used for others.
inline bool has_loops(const Tensor& x) {
  const auto dtype = x.scalar_type();
  return x.device().is_cpu() && (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kDouble);
}

// The type in which sums over `dtype` are accumulated: fp64 for fp64, else fp32.
inline at::ScalarType computed_type(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace stretto::kernels
