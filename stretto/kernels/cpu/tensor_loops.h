#pragma once

#include "stretto/base/error.h"
#include "stretto/kernels/cpu/dropout_loops.h"
#include "stretto/kernels/cpu/numbers.h"
#include "stretto/kernels/dropout.h"
#include "stretto/kernels/loop_types.h"

namespace stretto::kernels {

// Conversions from tensors to the arguments of loops.

// Calls f with a value of the loops' type for `dtype`. REQUIRES: fp32, fp64 or bf16.
template <class F>
void with_loop_type(at::ScalarType dtype, const F& f) {
  if (dtype == at::kFloat) return f(float{});
  if (dtype == at::kDouble) return f(double{});
  f(Bf16{});
}

// The dtype of the loops' type T.
template <class T>
inline constexpr at::ScalarType type_of = c10::CppTypeToScalarType<T>::value;
template <>
inline constexpr at::ScalarType type_of<Bf16> = at::kBFloat16;
template <>
inline constexpr at::ScalarType type_of<F16> = at::kHalf;

// The tensor's memory, or null for an undefined one. REQUIRES: it is contiguous and of type T.
template <class T>
T* memory_of(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  if (!tensor.is_contiguous() || tensor.scalar_type() != type_of<T>) {
    throw ShapeError("kernel: {} is not contiguous or not of the type of the other operands",
                     describe(tensor));
  }
  return static_cast<T*>(tensor.data_ptr());
}

// Loops do not check sizes. Throws ShapeError unless `tensor` is undefined or has the sizes `expected`.
inline void require_sizes(const char* what, const Tensor& tensor, at::IntArrayRef expected) {
  if (!tensor.defined() || tensor.sizes() == expected) return;
  throw ShapeError("{} is {}; the other operands require {}", what, describe(tensor), describe(expected));
}

Drop drop_of(const Dropout& dropout);

}  // namespace stretto::kernels
