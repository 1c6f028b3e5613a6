#pragma once

#include <cstddef>
#include <cstdint>

namespace stretto::kernels {

// out [m, n] = a [m, k] b [k, n] + bias, or out += a b. Strides are in elements. Products are summed in fp32.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  bool bf16 = false;  // type of a and b: bf16 or fp32
  const void* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  bool a_by_columns = false;  // whether a_row is 1, else a_column is. REQUIRES: true for bf16 with an odd k
  const void* b = nullptr;    // one of its strides is 1
  int64_t b_row = 0, b_column = 0;
  void* out = nullptr;  // rows are contiguous
  int64_t out_row = 0;
  bool bf16_out = false;  // type of out: bf16, REQUIRES k <= most_k_of_bf16_out, or fp32
  bool accumulate = false;
  const float* bias = nullptr;  // [n], or null; only without `accumulate`
};

constexpr int64_t most_k_of_bf16_out = 4096;

// Whether this processor has the instructions that matrix_product() uses: AVX-512, and its bf16 extension.
bool has_matrix_product(bool bf16);

// The size in bytes of the scratch memory of matrix_product(), which must be aligned to 64 bytes.
size_t matrix_product_scratch(const MatrixProduct& product);

// Computes `product` on the calling thread. REQUIRES: has_matrix_product(product.bf16), m, n, k > 0.
void matrix_product(const MatrixProduct& product, void* scratch);

}  // namespace stretto::kernels
