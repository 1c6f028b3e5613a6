#include "stretto/kernels/cpu/few_rows_pairs.h"

#include <cstring>

#include "stretto/kernels/cpu/avx512_bf16.h"

namespace stretto::kernels {
namespace {

constexpr int64_t numbers = 32;  // bf16 numbers of a vector

int64_t rounded_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

}  // namespace

int64_t padded_pairs(const FewRowsProduct& product) { return rounded_up(product.k, numbers) / 2; }
int64_t padded_columns(int64_t columns) { return rounded_up(columns, numbers); }

void store_interleaved(const FewRowsProduct& product, int64_t first, int64_t last, const float* sums) {
  const int64_t width = padded_columns(last - first);
  for (int64_t r = 0; r < product.m; ++r) {
    float* const to = product.sums + r * product.n + first;
    for (int64_t j = 0; j < last - first; ++j) {
      const int64_t lane = j % numbers / 8, word = j % 8;  // of 128 bits
      to[j] = sums[r * width + j / numbers * numbers + word / 4 * (numbers / 2) + lane * 4 + word % 4];
    }
  }
}

size_t few_rows_pairs_scratch(const FewRowsProduct& product, int64_t columns) {
  const int64_t sums = product.b_by_columns ? 0 : padded_columns(columns);
  return static_cast<size_t>(product.m * (padded_pairs(product) + sums)) * sizeof(float);
}

}  // namespace stretto::kernels

#if defined(__x86_64__)

// g++ 12 warns of the intrinsics' own undefined operands (GCC bug 105593).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

namespace stretto::kernels {
namespace {

constexpr int most_sums = 16;  // in registers

STRETTO_AVX512_INLINE __mmask32 first(int64_t count) {
  return count <= 0 ? 0 : count >= numbers ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

STRETTO_AVX512_INLINE __m512 add(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// --- columns of b are contiguous: each sum is a dot product

template <int m, int columns>
STRETTO_AVX512_INLINE void dot(const FewRowsProduct& product, const uint32_t* pairs, int64_t column) {
  constexpr int ahead = 8;  // the distance of prefetches, in columns
  const int64_t padded = padded_pairs(product), stride = product.b_stride;
  const auto* const b = static_cast<const uint16_t*>(product.b) + column * stride;
  __m512 sums[m][columns];
#pragma GCC unroll 8
  for (int r = 0; r < m; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) sums[r][c] = _mm512_setzero_ps();
  for (int64_t i = 0; i < product.k; i += numbers) {
    const __mmask32 inside = first(product.k - i);
    __m512i y[columns];
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
      __builtin_prefetch(b + (c + ahead) * stride + i);
      y[c] = _mm512_maskz_loadu_epi16(inside, b + c * stride + i);
    }
#pragma GCC unroll 8
    for (int r = 0; r < m; ++r) {
      const __m512i x = _mm512_loadu_si512(pairs + r * padded + i / 2);
#pragma GCC unroll 8
      for (int c = 0; c < columns; ++c) sums[r][c] = add(sums[r][c], x, y[c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < m; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c)
      product.sums[r * product.n + column + c] = _mm512_reduce_add_ps(sums[r][c]);
}

template <int m>
STRETTO_AVX512 void dot_columns(const FewRowsProduct& product, const uint32_t* pairs, int64_t begin,
                                int64_t end) {
  constexpr int columns = most_sums / m >= 8 ? 8 : most_sums / m >= 4 ? 4 : most_sums / m >= 2 ? 2 : 1;
  int64_t column = begin;
  for (; column + columns <= end; column += columns) dot<m, columns>(product, pairs, column);
  for (; column < end; ++column) dot<m, 1>(product, pairs, column);
}

// --- rows of b are contiguous: multiples of pairs of them are added to the sums

// Adds `rows` pairs of rows of b from pair `pair` on. The sums of 32 columns are two vectors in the order in
// which instructions interleave two rows.
template <int m, int rows>
STRETTO_AVX512_INLINE void add_rows(const FewRowsProduct& product, const uint32_t* pairs, int64_t pair,
                                    int64_t begin, int64_t end, float* sums) {
  const int64_t padded = padded_pairs(product), width = padded_columns(end - begin),
                stride = product.b_stride;
  const auto* const b = static_cast<const uint16_t*>(product.b) + 2 * pair * stride + begin;
  const bool last_is_single = 2 * (pair + rows) > product.k;
  for (int64_t j = 0; j < end - begin; j += numbers) {
    const __mmask32 inside = first(end - begin - j);
    __m512 low[m], high[m];
#pragma GCC unroll 8
    for (int r = 0; r < m; ++r) {
      low[r] = _mm512_loadu_ps(sums + r * width + j);
      high[r] = _mm512_loadu_ps(sums + r * width + j + numbers / 2);
    }
#pragma GCC unroll 8
    for (int p = 0; p < rows; ++p) {
      const uint16_t* const row = b + 2 * p * stride + j;
      __builtin_prefetch(row + 2 * rows * stride);
      __builtin_prefetch(row + (2 * rows + 1) * stride);
      const __m512i one = _mm512_maskz_loadu_epi16(inside, row);
      const __m512i two =
          _mm512_maskz_loadu_epi16(last_is_single && p == rows - 1 ? __mmask32{0} : inside, row + stride);
      const __m512i left = _mm512_unpacklo_epi16(one, two), right = _mm512_unpackhi_epi16(one, two);
#pragma GCC unroll 8
      for (int r = 0; r < m; ++r) {
        const __m512i x = _mm512_set1_epi32(static_cast<int>(pairs[r * padded + pair + p]));
        low[r] = add(low[r], x, left);
        high[r] = add(high[r], x, right);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < m; ++r) {
      _mm512_storeu_ps(sums + r * width + j, low[r]);
      _mm512_storeu_ps(sums + r * width + j + numbers / 2, high[r]);
    }
  }
}

template <int m>
STRETTO_AVX512 void add_columns(const FewRowsProduct& product, const uint32_t* pairs, int64_t begin,
                                int64_t end, float* sums) {
  constexpr int rows = 4;
  const int64_t width = padded_columns(end - begin), count = (product.k + 1) / 2;
  std::memset(sums, 0, static_cast<size_t>(m * width) * sizeof(float));
  int64_t pair = 0;
  for (; pair + rows <= count; pair += rows) add_rows<m, rows>(product, pairs, pair, begin, end, sums);
  for (; pair < count; ++pair) add_rows<m, 1>(product, pairs, pair, begin, end, sums);
  store_interleaved(product, begin, end, sums);
}

template <int m>
void multiply_rows(const FewRowsProduct& product, int64_t begin, int64_t end, void* scratch) {
  auto* const pairs = static_cast<uint32_t*>(scratch);
  write_pairs(product, pairs);
  if (product.b_by_columns) return dot_columns<m>(product, pairs, begin, end);
  add_columns<m>(product, pairs, begin, end, static_cast<float*>(scratch) + m * padded_pairs(product));
}

}  // namespace

STRETTO_AVX512 void write_pairs(const FewRowsProduct& product, uint32_t* pairs) {
  const int64_t padded = padded_pairs(product);
  for (int64_t r = 0; r < product.m; ++r) {
    for (int64_t i = 0; i < 2 * padded; i += numbers / 2) {
      const auto inside = static_cast<__mmask16>(first(product.k - i));
      const __m256bh narrow =
          _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(inside, product.a + r * product.k + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs + r * padded + i / 2), (__m256i)narrow);
    }
  }
}

void few_rows_pairs(const FewRowsProduct& product, int64_t begin, int64_t end, void* scratch) {
  using Rows = void (*)(const FewRowsProduct&, int64_t, int64_t, void*);
  constexpr Rows functions[most_few_rows] = {multiply_rows<1>, multiply_rows<2>, multiply_rows<3>,
                                             multiply_rows<4>, multiply_rows<5>, multiply_rows<6>,
                                             multiply_rows<7>, multiply_rows<8>};
  functions[product.m - 1](product, begin, end, scratch);
}

}  // namespace stretto::kernels

#pragma GCC diagnostic pop

#else

namespace stretto::kernels {

void few_rows_pairs(const FewRowsProduct&, int64_t, int64_t, void*) {}
void write_pairs(const FewRowsProduct&, uint32_t*) {}

}  // namespace stretto::kernels

#endif
