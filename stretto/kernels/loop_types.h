#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Whether loops for this kind of tensor exist; ATen serves the others.
inline bool has_loops(const Tensor& x) {
  const auto dtype = x.scalar_type();
  return x.device().is_cpu() && (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kDouble);
}

// The type in which numbers of `dtype` are summed: fp32, also for bf16; fp64 for fp64.
inline at::ScalarType computed_type(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace stretto::kernels
