#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// Whether stretto's operators support the tensor's device and dtype; ATen is used for others.
inline bool has_loops(const Tensor& x) {
  const auto dtype = x.scalar_type();
  return x.device().is_cpu() &&
         (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf || dtype == at::kDouble);
}

// There are no loops for fp16: the operators widen its operands to fp32 and round their results once.
inline bool is_fp16(const Tensor& x) { return x.defined() && x.scalar_type() == at::kHalf; }
inline Tensor widen_fp16(const Tensor& x) { return is_fp16(x) ? x.to(at::kFloat) : x; }

// The type in which sums over `dtype` are accumulated: fp64 for fp64, else fp32.
inline at::ScalarType computed_type(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace stretto::kernels
