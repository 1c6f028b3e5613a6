#include "stretto/kernels/bf16_product.h"

#include "stretto/kernels/cpu/tensor_loops.h"

// Exported by libtorch_cpu of PyTorch's wheels, which contain MKL; null in builds without it.
extern "C" __attribute__((weak)) void cblas_gemm_bf16bf16f32(int layout, int transpose_a, int transpose_b,
                                                             int m, int n, int k, float alpha, const void* a,
                                                             int lda, const void* b, int ldb, float beta,
                                                             float* c, int ldc);

namespace stretto::kernels {

bool has_bf16_product() { return cblas_gemm_bf16bf16f32 != nullptr; }

void add_bf16_product(const Tensor& sum, const Tensor& a, const Tensor& b) {
  constexpr int row_major = 101, plain = 111, transposed = 112;
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  if (a.size(0) != b.size(0) || sum.size(0) != a.size(1) || sum.size(1) != b.size(1)) {
    throw ShapeError("product: {} transposed times {} does not fit {}", describe(a), describe(b),
                     describe(sum));
  }
  cblas_gemm_bf16bf16f32(row_major, transposed, plain, size(sum.size(0)), size(sum.size(1)), size(a.size(0)),
                         1.0f, memory_of<Bf16>(a), size(a.size(1)), memory_of<Bf16>(b), size(b.size(1)), 1.0f,
                         memory_of<float>(sum), size(sum.size(1)));
}

}  // namespace stretto::kernels
