#pragma once

#include <array>
#include <string>

#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// The matrix products of a linear map y = x W^T: y itself, the gradient of x, and the gradient of W.
enum class MatmulRole { forward, input_gradient, weight_gradient };
inline constexpr std::array all_matmul_roles = {MatmulRole::forward, MatmulRole::input_gradient,
                                                MatmulRole::weight_gradient};
const char* name_of(MatmulRole role);  // "forward", "input_gradient", "weight_gradient"

// The libraries that compute them on CPU. Which is the fastest depends on the processor: MKL's fp32 products reach less
// than half of oneDNN's rate on AMD's Zen 5, and its bf16 products run as fp32 there.
enum class MatmulLibrary {
  aten,    // at::mm: MKL or OpenBLAS in fp32, oneDNN in bf16
  onednn,  // oneDNN's matmul, also in fp32
  mkl,     // MKL's bf16 product that accumulates into fp32: weight gradients in bf16 only
  own,     // stretto's, on one thread of a processor with AVX-512 (for bf16: AVX512-BF16)
};
inline constexpr std::array all_matmul_libraries = {MatmulLibrary::aten, MatmulLibrary::onednn,
                                                    MatmulLibrary::mkl, MatmulLibrary::own};
const char* name_of(MatmulLibrary library);            // "aten", "onednn", "mkl", "stretto"
MatmulLibrary parse_library(const std::string& name);  // throws ConfigError

// Whether `library` computes products of this role and operand type on this machine: its function is in this libtorch, and
// runs. Says nothing about its speed.
bool is_usable(MatmulLibrary library, MatmulRole role, at::ScalarType dtype);

// A library for each role.
struct MatmulChoice {
  std::array<MatmulLibrary, all_matmul_roles.size()> of_role = {};  // aten

  MatmulLibrary operator[](MatmulRole role) const { return of_role[static_cast<size_t>(role)]; }
  bool operator==(const MatmulChoice&) const = default;
};
std::string to_text(const MatmulChoice& choice);  // "onednn", "onednn, weight gradients mkl"

// The libraries of CPU products whose operands are of type `dtype`: a property of the process, like torch's number of
// threads, since layers compute on autograd's threads too. Initially aten, which is also used for other types and devices.
// Set it before a step, not during one. Throws ConfigError where a library is not usable.
void use_matmul(at::ScalarType dtype, const MatmulChoice& choice);
MatmulChoice matmul_in_use(at::ScalarType dtype);

// out = a b, or out += a b: a [m, k], b [k, n], out [m, n], by the library in use. a and b have one type, which is out's, or
// bf16 where out is fp32. They may be transposed or otherwise strided views, but not overlap out. Throws ShapeError.
void multiply(MatmulRole role, const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate = false);

// The forward product with a bias [n] of out's type: out = a b + bias.
void multiply_and_add(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias);

// What libtorch's profiler records of both: an event of this name, with the shapes of a and b.
const char* matmul_event(MatmulRole role);

// The same product by `library`. REQUIRES: is_usable().
void multiply_by(MatmulLibrary library, const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate);

}  // namespace stretto::kernels
