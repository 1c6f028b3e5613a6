#pragma once

#include <array>
#include <string>

#include "stretto/kernels/cpu/few_rows_loops.h"
#include "stretto/tensor/tensor.h"

namespace stretto::kernels {

// The matmuls of a linear map y = x W^T: y itself, the gradient of x, and the gradient of W.
enum class MatmulRole { forward, input_gradient, weight_gradient };
inline constexpr std::array all_matmul_roles = {MatmulRole::forward, MatmulRole::input_gradient,
                                                MatmulRole::weight_gradient};
const char* name_of(MatmulRole role);  // "forward", "input_gradient", "weight_gradient"

// The matmul libraries on CPU. The fastest one depends on the processor: on AMD's Zen 5, MKL's fp32 matmul
// reaches less than half of oneDNN's rate, and its bf16 matmul runs as fp32.
enum class MatmulLibrary {
  aten,    // at::mm: MKL or OpenBLAS in fp32, oneDNN in bf16
  onednn,  // oneDNN's matmul, also in fp32
  mkl,     // MKL's bf16 matmul that accumulates into fp32: only for weight gradients in bf16
  own,     // stretto's matmul, on one thread of a processor with AVX-512 (for bf16: AVX512-BF16)
};
inline constexpr std::array all_matmul_libraries = {MatmulLibrary::aten, MatmulLibrary::onednn,
                                                    MatmulLibrary::mkl, MatmulLibrary::own};
const char* name_of(MatmulLibrary library);            // "aten", "onednn", "mkl", "stretto"
MatmulLibrary parse_library(const std::string& name);  // throws ConfigError

// Whether `library` can compute matmuls of this role and operand dtype on this machine: libtorch exports its
// function, and a trial gives the right result.
bool is_usable(MatmulLibrary library, MatmulRole role, at::ScalarType dtype);

// A library for each role.
struct MatmulChoice {
  std::array<MatmulLibrary, all_matmul_roles.size()> of_role = {};  // aten

  MatmulLibrary operator[](MatmulRole role) const { return of_role[static_cast<size_t>(role)]; }
  bool operator==(const MatmulChoice&) const = default;
};
std::string to_text(const MatmulChoice& choice);  // "onednn", "onednn, weight gradients mkl"

// Sets the libraries of CPU matmuls with operands of `dtype` for the process, like torch's number of threads,
// since layers also compute on autograd's threads. The default is aten, which is always used for other dtypes
// and devices. Set it before a step, not during one. Throws ConfigError if a library is not usable.
void use_matmul(at::ScalarType dtype, const MatmulChoice& choice);
MatmulChoice matmul_in_use(at::ScalarType dtype);

// Computes out = a b, or out += a b, by the library in use: a [m, k], b [k, n], out [m, n]. a and b have one
// dtype, that of out, or bf16 if out is fp32. They may be transposed or otherwise strided views, but not
// overlap out. Throws ShapeError.
void multiply(MatmulRole role, const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate = false);

// The forward matmul with a bias [n] of out's dtype: out = a b + bias.
void multiply_and_add(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias);

// Kernels that read b once, at the speed of memory, where a has few rows (cpu/few_rows_loops.h).
enum class FewRowsKernel { vectors, tiles };
// tiles: bf16 on processors with AMX.
bool is_usable(FewRowsKernel kernel, at::ScalarType dtype);

// Forward matmuls with at most `rows` rows, of operands of `dtype` on CPU, are computed by `kernel` instead
// of by the library in use; 0, the default: none are. For the process, as use_matmul. REQUIRES: rows <=
// most_few_rows, and is_usable().
void use_few_rows(at::ScalarType dtype, int64_t rows, FewRowsKernel kernel = FewRowsKernel::vectors);
int64_t few_rows_in_use(at::ScalarType dtype);

// Computes out = a b, or out += a b, by `kernel`. REQUIRES: is_usable(), a has 1 to most_few_rows rows and at
// least one column, b at least one column and contiguous rows or columns, and both are fp32 or both bf16, on
// CPU.
void multiply_few_rows(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate,
                       FewRowsKernel kernel = FewRowsKernel::vectors);

// The name of the event that both functions record in libtorch's profiler, with the shapes of a and b.
const char* matmul_event(MatmulRole role);

// Like multiply, by `library`. REQUIRES: is_usable().
void multiply_by(MatmulLibrary library, const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate);

}  // namespace stretto::kernels
