#include "stretto/kernels/cpu/pair_products.h"

#include "stretto/kernels/cpu/avx512_bf16.h"
#include "stretto/kernels/cpu/matmul_loops.h"
#include "stretto/kernels/cpu/pair_tiles.h"

#if defined(__x86_64__)

// g++ 12 warns of the intrinsics' own undefined operands (GCC bug 105593).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

namespace stretto::kernels {
namespace {

constexpr int64_t lanes = 16;

STRETTO_AVX512_INLINE void store(float* to, __m512 sum, __m512 factor, bool accumulate) {
  _mm512_storeu_ps(
      to, accumulate ? _mm512_fmadd_ps(sum, factor, _mm512_loadu_ps(to)) : _mm512_mul_ps(sum, factor));
}

// `rows` rows and `vectors` vectors of columns of c.
template <int rows, int vectors>
STRETTO_AVX512_INLINE void multiply_block(const PairProduct& product, int64_t i, int64_t j) {
  __m512 sums[rows][vectors];
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_setzero_ps();
  const uint32_t* a = product.a + i * product.a_row;
  const uint32_t* b = product.b + j;
  for (int64_t p = 0; p < product.k; ++p, a += product.a_column, b += product.b_row) {
    __m512i right[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) right[v] = _mm512_loadu_si512(b + v * lanes);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const __m512i left = _mm512_set1_epi32(static_cast<int>(a[r * product.a_row]));
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], (__m512bh)left, (__m512bh)right[v]);
    }
  }
  const __m512 factor = _mm512_set1_ps(product.factor);
  float* const c = product.c + i * product.c_row + j;
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      store(c + r * product.c_row + v * lanes, sums[r][v], factor, product.accumulate);
}

template <int rows>
STRETTO_AVX512_INLINE void multiply_rows(const PairProduct& product, int64_t i) {
  int64_t j = 0;
  for (; j + 2 * lanes <= product.n; j += 2 * lanes) multiply_block<rows, 2>(product, i, j);
  if (j < product.n) multiply_block<rows, 1>(product, i, j);
}

}  // namespace

bool has_pair_products() { return has_matrix_product(/*bf16=*/true); }

STRETTO_AVX512 void multiply_pairs(const PairProduct& product) {
  int64_t i = product.tiles ? multiply_pairs_by_tiles(product) : 0;
  for (; i + 8 <= product.m; i += 8) multiply_rows<8>(product, i);
  if (product.m - i >= 4) multiply_rows<4>(product, i), i += 4;
  if (product.m - i >= 2) multiply_rows<2>(product, i), i += 2;
  if (i < product.m) multiply_rows<1>(product, i);
}

STRETTO_AVX512 void round_to_pairs(const float* from, int64_t rows, int64_t n, int64_t stride,
                                   uint32_t* along, uint32_t* down) {
  for (int64_t i = 0; i < rows; i += 2) {
    const float *first = from + i * stride, *second = first + stride;
    const bool has_second = i + 1 < rows;
    auto* const first_row = reinterpret_cast<__m256i*>(along + i * stride / 2);
    auto* const second_row = reinterpret_cast<__m256i*>(along + (i + 1) * stride / 2);
    for (int64_t j = 0; j < stride; j += lanes) {
      const int64_t left = n - j;
      const __mmask16 mask =
          left >= lanes ? 0xffff : static_cast<__mmask16>(left <= 0 ? 0 : (1U << left) - 1);
      const auto one = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, first + j));
      const auto two =
          (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(has_second ? mask : __mmask16{0}, second + j));
      _mm256_storeu_si256(first_row + j / lanes, one);
      if (has_second) _mm256_storeu_si256(second_row + j / lanes, two);
      const __m512i pairs =
          _mm512_or_si512(_mm512_cvtepu16_epi32(one), _mm512_slli_epi32(_mm512_cvtepu16_epi32(two), 16));
      _mm512_storeu_si512(down + i / 2 * stride + j, pairs);
    }
  }
}

}  // namespace stretto::kernels

#pragma GCC diagnostic pop

#else

namespace stretto::kernels {

bool has_pair_products() { return false; }
void multiply_pairs(const PairProduct&) {}
void round_to_pairs(const float*, int64_t, int64_t, int64_t, uint32_t*, uint32_t*) {}

}  // namespace stretto::kernels

#endif
