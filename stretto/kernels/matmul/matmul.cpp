#include "stretto/kernels/matmul/matmul.h"

#include <algorithm>
#include <atomic>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include "stretto/base/error.h"
#include "stretto/kernels/cpu/matmul_loops.h"
#include "stretto/kernels/cpu/tiles.h"

// Exported by libtorch_cpu of PyTorch's wheels, which contain oneDNN and MKL; null in builds that do not
// export them.
namespace at::native {
[[gnu::weak]] void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& out, float beta,
                                 float alpha);
}  // namespace at::native
extern "C" __attribute__((weak)) void cblas_gemm_bf16bf16f32(int layout, int transpose_a, int transpose_b,
                                                             int m, int n, int k, float alpha, const void* a,
                                                             int lda, const void* b, int ldb, float beta,
                                                             float* c, int ldc);

namespace stretto::kernels {
namespace {

void finish(const Tensor& out, const Tensor& product, bool accumulate) {
  if (accumulate) {
    Tensor(out).add_(product);
  } else {
    Tensor(out).copy_(product);
  }
}

void multiply_by_aten(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  Tensor result = out;
  if (out.scalar_type() != a.scalar_type()) {
    finish(out, at::mm(a, b), accumulate);
  } else if (accumulate) {
    result.addmm_(a, b);
  } else {
    at::mm_out(result, a, b);
  }
}

void multiply_by_onednn(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  if (out.scalar_type() == a.scalar_type() && out.is_contiguous()) {
    at::native::mkldnn_matmul(a, b, out, accumulate ? 1 : 0, 1);
  } else {
    const Tensor product = at::empty(out.sizes(), a.options());
    at::native::mkldnn_matmul(a, b, product, 0, 1);
    finish(out, product, accumulate);
  }
}

// A matrix as BLAS sees it: by rows, or by columns.
struct BlasMatrix {
  explicit BlasMatrix(const Tensor& x) {
    const bool by_rows = x.stride(1) == 1 && x.stride(0) >= std::max<int64_t>(1, x.size(1));
    const bool by_columns = x.stride(0) == 1 && x.stride(1) >= std::max<int64_t>(1, x.size(0));
    memory = by_rows || by_columns ? x : x.contiguous();
    transposed = by_columns && !by_rows;
    leading = static_cast<int>(memory.stride(transposed ? 1 : 0));
  }
  Tensor memory;
  bool transposed = false;
  int leading = 0;
};

void multiply_by_mkl(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  constexpr int row_major = 101, plain = 111, transposed = 112;
  const BlasMatrix left(a), right(b);
  const bool direct = out.is_contiguous() && out.scalar_type() == at::kFloat;
  const Tensor sum = direct ? out : out.to(at::kFloat).contiguous();
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  cblas_gemm_bf16bf16f32(row_major, left.transposed ? transposed : plain,
                         right.transposed ? transposed : plain, size(a.size(0)), size(b.size(1)),
                         size(a.size(1)), 1.0f, left.memory.const_data_ptr(), left.leading,
                         right.memory.const_data_ptr(), right.leading, accumulate ? 1.0f : 0.0f,
                         sum.mutable_data_ptr<float>(), size(sum.size(1)));
  if (!direct) Tensor(out).copy_(sum);
}

// A matrix whose rows or columns are contiguous.
Tensor with_unit_stride(const Tensor& x) { return x.stride(0) == 1 || x.stride(1) == 1 ? x : x.contiguous(); }

void multiply_by_own(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate,
                     const Tensor& bias = {}) {
  const bool bf16 = a.scalar_type() == at::kBFloat16;
  const bool bf16_out = out.scalar_type() == at::kBFloat16;
  const int64_t k = a.size(1);
  // The second number of a bf16 pair beyond an odd k must not be read. The last column is either added
  // separately, which reads and writes the sums once more, or read through a copy of a by columns.
  const bool odd = bf16 && k % 2 == 1;
  const bool add_last_separately = odd && a.stride(0) != 1 && k > 2 * b.size(1);
  if (out.stride(1) != 1 || (bf16_out && (add_last_separately || k > most_k_of_bf16_out))) {
    const Tensor sum = accumulate ? out.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous()
                                  : at::empty(out.sizes(), out.options().dtype(at::kFloat));
    multiply_by_own(sum, a, b, accumulate, bias);
    Tensor(out).copy_(sum);
    return;
  }
  if (add_last_separately) {
    multiply_by_own(out, a.narrow(1, 0, k - 1), b.narrow(0, 0, k - 1), accumulate, bias);
    Tensor(out).addr_(a.select(1, k - 1).to(at::kFloat), b.select(0, k - 1).to(at::kFloat));
    return;
  }
  const Tensor left = odd ? a.t().contiguous().t() : with_unit_stride(a), right = with_unit_stride(b);
  const Tensor wide_bias = bias.defined() ? bias.to(at::kFloat).contiguous() : Tensor();
  const MatrixProduct product = {
      .m = a.size(0),
      .n = b.size(1),
      .k = k,
      .bf16 = bf16,
      .a = left.const_data_ptr(),
      .a_row = left.stride(0),
      .a_column = left.stride(1),
      .a_by_columns = odd || left.stride(1) != 1,
      .b = right.const_data_ptr(),
      .b_row = right.stride(0),
      .b_column = right.stride(1),
      .out = out.mutable_data_ptr(),
      .out_row = out.stride(0),
      .bf16_out = bf16_out,
      .accumulate = accumulate,
      .bias = bias.defined() ? wide_bias.const_data_ptr<float>() : nullptr,
  };
  const Tensor scratch = at::empty({static_cast<int64_t>(matrix_product_scratch(product))}, at::kByte);
  matrix_product(product, scratch.mutable_data_ptr());
}

// Whether a trial matmul gives the correct result.
bool is_correct(MatmulLibrary library, MatmulRole role, at::ScalarType dtype) {
  const bool fp32_sum = role == MatmulRole::weight_gradient;
  try {
    const Tensor a = at::ones({2, 3}, dtype), b = at::ones({3, 2}, dtype);
    const Tensor out = at::ones({2, 2}, fp32_sum ? at::kFloat : dtype);
    multiply_by(library, out, a, b, /*accumulate=*/fp32_sum);
    return out.eq(fp32_sum ? 4 : 3).all().item<bool>();
  } catch (const std::exception&) {
    return false;
  }
}

bool is_chosen_type(at::ScalarType dtype) { return dtype == at::kFloat || dtype == at::kBFloat16; }

struct FewRows {
  std::atomic<int64_t> rows = 0;
  std::atomic<FewRowsKernel> kernel = FewRowsKernel::vectors;
};

FewRows& few_rows(at::ScalarType dtype) {
  static FewRows fp32, bf16;
  return dtype == at::kFloat ? fp32 : bf16;
}

// Whether multiply_few_rows computes a forward matmul.
bool has_few_rows(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (!a.is_cpu() || !is_chosen_type(a.scalar_type()) || out.numel() == 0 || a.size(1) == 0) return false;
  return a.size(0) <= few_rows(a.scalar_type()).rows.load(std::memory_order_relaxed) &&
         (b.stride(0) == 1 || b.stride(1) == 1);
}

void multiply_by_kernel_in_use(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  multiply_few_rows(out, a, b, accumulate, few_rows(a.scalar_type()).kernel.load(std::memory_order_relaxed));
}

using InUse = std::array<std::atomic<MatmulLibrary>, all_matmul_roles.size()>;

InUse& in_use(at::ScalarType dtype) {
  static InUse fp32 = {}, bf16 = {};
  return dtype == at::kFloat ? fp32 : bf16;
}

MatmulLibrary library_for(MatmulRole role, const Tensor& a) {
  if (!a.is_cpu() || !is_chosen_type(a.scalar_type())) return MatmulLibrary::aten;
  return in_use(a.scalar_type())[static_cast<size_t>(role)].load(std::memory_order_relaxed);
}

void require_shapes(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (a.dim() == 2 && b.dim() == 2 && out.dim() == 2 && a.size(1) == b.size(0) && out.size(0) == a.size(0) &&
      out.size(1) == b.size(1)) {
    return;
  }
  throw ShapeError("matmul: {} x {} does not match the output {}; expected [m, k] x [k, n] = [m, n]",
                   describe(a), describe(b), describe(out));
}

}  // namespace

const char* name_of(MatmulRole role) {
  switch (role) {
    case MatmulRole::forward:
      return "forward";
    case MatmulRole::input_gradient:
      return "input_gradient";
    case MatmulRole::weight_gradient:
      break;
  }
  return "weight_gradient";
}

const char* name_of(MatmulLibrary library) {
  switch (library) {
    case MatmulLibrary::aten:
      return "aten";
    case MatmulLibrary::onednn:
      return "onednn";
    case MatmulLibrary::mkl:
      return "mkl";
    case MatmulLibrary::own:
      break;
  }
  return "stretto";
}

MatmulLibrary parse_library(const std::string& name) {
  for (const MatmulLibrary library : all_matmul_libraries) {
    if (name == name_of(library)) return library;
  }
  throw ConfigError("products: \"{}\" is not a matmul library; expected aten, onednn, mkl or stretto", name);
}

bool is_usable(MatmulLibrary library, MatmulRole role, at::ScalarType dtype) {
  if (library == MatmulLibrary::aten) return true;
  if (!is_chosen_type(dtype)) return false;
  if (library == MatmulLibrary::own) return has_matrix_product(dtype == at::kBFloat16);
  if (library == MatmulLibrary::mkl) {
    if (role != MatmulRole::weight_gradient || dtype != at::kBFloat16) return false;
    return cblas_gemm_bf16bf16f32 != nullptr && is_correct(library, role, dtype);
  }
  return at::native::mkldnn_matmul != nullptr && at::globalContext().userEnabledMkldnn() &&
         is_correct(library, role, dtype);
}

std::string to_text(const MatmulChoice& choice) {
  const MatmulLibrary first = choice[MatmulRole::forward];
  std::string text = name_of(first);
  if (choice[MatmulRole::input_gradient] != first)
    text += fmt::format(", input gradients {}", name_of(choice[MatmulRole::input_gradient]));
  if (choice[MatmulRole::weight_gradient] != first)
    text += fmt::format(", weight gradients {}", name_of(choice[MatmulRole::weight_gradient]));
  return text;
}

void use_matmul(at::ScalarType dtype, const MatmulChoice& choice) {
  for (const MatmulRole role : all_matmul_roles) {
    if (is_usable(choice[role], role, dtype)) continue;
    throw ConfigError("products: {} does not support {} matmuls of {} on this machine; use aten",
                      name_of(choice[role]), name_of(role), c10::toString(dtype));
  }
  if (!is_chosen_type(dtype)) return;
  for (const MatmulRole role : all_matmul_roles)
    in_use(dtype)[static_cast<size_t>(role)].store(choice[role], std::memory_order_relaxed);
}

MatmulChoice matmul_in_use(at::ScalarType dtype) {
  MatmulChoice choice;
  if (!is_chosen_type(dtype)) return choice;
  for (size_t role = 0; role < all_matmul_roles.size(); ++role)
    choice.of_role[role] = in_use(dtype)[role].load(std::memory_order_relaxed);
  return choice;
}

void multiply_by(MatmulLibrary library, const Tensor& out, const Tensor& a, const Tensor& b,
                 bool accumulate) {
  require_shapes(out, a, b);
  const bool is_empty = out.numel() == 0 || a.size(1) == 0;
  if (library == MatmulLibrary::aten || is_empty) return multiply_by_aten(out, a, b, accumulate);
  if (library == MatmulLibrary::onednn) return multiply_by_onednn(out, a, b, accumulate);
  if (library == MatmulLibrary::own) return multiply_by_own(out, a, b, accumulate);
  multiply_by_mkl(out, a, b, accumulate);
}

void multiply(MatmulRole role, const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  RECORD_FUNCTION(matmul_event(role), std::vector<c10::IValue>({a, b}));
  require_shapes(out, a, b);
  if (role == MatmulRole::forward && has_few_rows(out, a, b))
    return multiply_by_kernel_in_use(out, a, b, accumulate);
  multiply_by(library_for(role, a), out, a, b, accumulate);
}

void multiply_and_add(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias) {
  RECORD_FUNCTION(matmul_event(MatmulRole::forward), std::vector<c10::IValue>({a, b}));
  require_shapes(out, a, b);
  if (has_few_rows(out, a, b)) {
    multiply_by_kernel_in_use(out, a, b, /*accumulate=*/false);
    Tensor(out).add_(bias);
    return;
  }
  const MatmulLibrary library = library_for(MatmulRole::forward, a);
  if (library == MatmulLibrary::own && out.numel() > 0 && a.size(1) > 0)
    return multiply_by_own(out, a, b, /*accumulate=*/false, bias);
  Tensor(out).copy_(bias.expand_as(out));
  multiply_by(library, out, a, b, /*accumulate=*/true);
}

bool is_usable(FewRowsKernel kernel, at::ScalarType dtype) {
  return is_chosen_type(dtype) &&
         (kernel == FewRowsKernel::vectors || (dtype == at::kBFloat16 && has_tiles()));
}

void use_few_rows(at::ScalarType dtype, int64_t rows, FewRowsKernel kernel) {
  if (!is_chosen_type(dtype)) return;
  few_rows(dtype).rows.store(rows, std::memory_order_relaxed);
  few_rows(dtype).kernel.store(kernel, std::memory_order_relaxed);
}

int64_t few_rows_in_use(at::ScalarType dtype) {
  return is_chosen_type(dtype) ? few_rows(dtype).rows.load(std::memory_order_relaxed) : 0;
}

void multiply_few_rows(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate,
                       FewRowsKernel kernel) {
  const Tensor left = a.to(at::kFloat).contiguous();
  const bool direct = !accumulate && out.scalar_type() == at::kFloat && out.is_contiguous();
  const Tensor sums = direct ? out : at::empty(out.sizes(), left.options());
  const bool by_columns = b.stride(0) == 1;
  const FewRowsProduct product = {
      .m = a.size(0),
      .n = b.size(1),
      .k = a.size(1),
      .a = left.const_data_ptr<float>(),
      .bf16 = b.scalar_type() == at::kBFloat16,
      .b = b.const_data_ptr(),
      .tiles = kernel == FewRowsKernel::tiles,
      .b_by_columns = by_columns,
      .b_stride = b.stride(by_columns ? 1 : 0),
      .sums = sums.mutable_data_ptr<float>(),
  };
  const int64_t steps = (product.n + few_rows_step - 1) / few_rows_step;
  at::parallel_for(0, steps, 1, [&](int64_t first_step, int64_t last_step) {
    const int64_t first = first_step * few_rows_step, last = std::min(last_step * few_rows_step, product.n);
    const Tensor scratch =
        at::empty({static_cast<int64_t>(few_rows_scratch(product, last - first))}, at::kByte);
    few_rows_product(product, first, last, scratch.mutable_data_ptr());
  });
  if (!direct) finish(out, sums, accumulate);
}

const char* matmul_event(MatmulRole role) {
  switch (role) {
    case MatmulRole::forward:
      return "stretto::forward_matmul";
    case MatmulRole::input_gradient:
      return "stretto::input_gradient_matmul";
    case MatmulRole::weight_gradient:
      break;
  }
  return "stretto::weight_gradient_matmul";
}

}  // namespace stretto::kernels
