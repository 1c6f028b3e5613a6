#include "stretto/kernels/cpu/matmul_loops.h"

#if defined(__x86_64__)

// g++ 12 warns of the intrinsics' own undefined operands (GCC bug 105593).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <algorithm>
#include <array>
#include <cstring>

#include <immintrin.h>

#include "stretto/kernels/cpu/avx512_bf16.h"

// Matmul by Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): tiles of 12 x
// 32 sums in registers, from a panel of 32 columns of b that is packed into L1 or L2, and 12 rows of a. a is
// packed only if its columns are contiguous. Unlike oneDNN, this compiles no code per shape, and prefetches
// the sums that it adds to.
//
// It uses the intrinsics of one instruction set; other processors use other libraries. Code for fp32 contains
// no bf16 instructions, so that it runs on processors without AVX512-BF16.

namespace stretto::kernels {
namespace {

constexpr int64_t tile_rows = 12, tile_columns = 32, lanes = 16;
constexpr int64_t most_rows = 768;    // rows of a per panel of b
constexpr int64_t most_units = 2048;  // units of k per pass
// The same with a packed a, which then fits into L2, and a panel of b into L1. k is then the number of rows
// of a batch, which may be large: with passes of 2,048 units the weight gradients of 2,048 rows take 1.1 to
// 1.2 times as long (Intel Xeon with AMX, fp32).
constexpr int64_t most_packed_units = 256;
static_assert(most_k_of_bf16_out == 2 * most_units);

// A unit is the operand of one lane of an instruction: 4 bytes, one fp32 number or two successive bf16 ones.
template <bool bf16>
constexpr int64_t per_unit = bf16 ? 2 : 1;
template <bool bf16>
constexpr int64_t element_bytes = 4 / per_unit<bf16>;

int64_t units_of(int64_t k, bool bf16) { return bf16 ? (k + 1) / 2 : k; }
int64_t rounded_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

STRETTO_AVX512_INLINE __mmask16 first(int64_t count) {
  return count >= lanes ? 0xffff : static_cast<__mmask16>(count <= 0 ? 0 : (1U << count) - 1);
}

template <bool bf16>
STRETTO_AVX512_INLINE __m512 multiply_add(__m512 a, __m512 b, __m512 sum) {
  if constexpr (bf16) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  } else {
    return _mm512_fmadd_ps(a, b, sum);
  }
}

// The destination of the sums of one tile.
struct TileOut {
  void* memory;
  int64_t row;
  __mmask16 masks[2];  // columns
  bool bf16, accumulate;
  const float* bias;  // 32 numbers, or null
};

STRETTO_AVX512_INLINE void store(__m512 sum, const TileOut& out, int64_t row, int half) {
  const __mmask16 mask = out.masks[half];
  if (out.bias != nullptr) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, out.bias + lanes * half));
  const int64_t at = row * out.row + lanes * half;
  if (!out.bf16) {
    float* const to = static_cast<float*>(out.memory) + at;
    if (out.accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, to));
    _mm512_mask_storeu_ps(to, mask, sum);
    return;
  }
  auto* const to = static_cast<uint16_t*>(out.memory) + at;
  if (out.accumulate) {
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, to)), 16);
    sum = _mm512_add_ps(sum, _mm512_castsi512_ps(bits));
  }
  _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(sum));
}

// `rows` rows of a times a panel of b. a: rows that are `a_row` bytes apart, or, packed, units of 12 rows.
template <bool bf16, bool packed, int rows>
STRETTO_AVX512 void multiply_tile(const char* a, int64_t a_row, const float* b, int64_t units,
                                  const TileOut& out) {
  if (out.accumulate && !out.bf16) {
    for (int r = 0; r < rows; ++r) {
      const auto* const to = static_cast<const float*>(out.memory) + r * out.row;
      _mm_prefetch(reinterpret_cast<const char*>(to), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(to + lanes), _MM_HINT_T0);
    }
  }
  __m512 sums[rows][2];
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  // Pointers to rows 0, 3, 6 and 9; the others are at one or two times a_row from them.
  const char *a0 = a, *a3 = a + 3 * a_row, *a6 = a + 6 * a_row, *a9 = a + 9 * a_row;
#pragma GCC unroll 2
  for (int64_t unit = 0; unit < units; ++unit) {
    const __m512 b0 = _mm512_load_ps(b), b1 = _mm512_load_ps(b + lanes);
    b += tile_columns;
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const char* from = a0 + int64_t{4} * r;
      if constexpr (!packed) from = (r < 3 ? a0 : r < 6 ? a3 : r < 9 ? a6 : a9) + r % 3 * a_row;
      float unit_of_a;  // pairs of bf16 need not be aligned
      std::memcpy(&unit_of_a, from, sizeof(unit_of_a));
      const __m512 x = _mm512_set1_ps(unit_of_a);
      sums[r][0] = multiply_add<bf16>(x, b0, sums[r][0]);
      sums[r][1] = multiply_add<bf16>(x, b1, sums[r][1]);
    }
    a0 += packed ? 4 * tile_rows : 4;
    if constexpr (!packed) a3 += 4, a6 += 4, a9 += 4;
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    store(sums[r][0], out, r, 0);
    store(sums[r][1], out, r, 1);
  }
}

template <bool bf16, bool packed>
void multiply_rows(int64_t rows, const char* a, int64_t a_row, const float* b, int64_t units,
                   const TileOut& out) {
  using Tile = void (*)(const char*, int64_t, const float*, int64_t, const TileOut&);
  constexpr std::array<Tile, tile_rows> tiles = {
      multiply_tile<bf16, packed, 1>,  multiply_tile<bf16, packed, 2>,  multiply_tile<bf16, packed, 3>,
      multiply_tile<bf16, packed, 4>,  multiply_tile<bf16, packed, 5>,  multiply_tile<bf16, packed, 6>,
      multiply_tile<bf16, packed, 7>,  multiply_tile<bf16, packed, 8>,  multiply_tile<bf16, packed, 9>,
      multiply_tile<bf16, packed, 10>, multiply_tile<bf16, packed, 11>, multiply_tile<bf16, packed, 12>};
  tiles[static_cast<size_t>(rows - 1)](a, a_row, b, units, out);
}

// Swaps rows and columns of a 16 x 16 matrix of units.
STRETTO_AVX512_INLINE void transpose(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Packs units of 32 columns of b [k, columns], the missing ones zero: to[unit][column]. `k` elements follow
// b.
template <bool bf16>
STRETTO_AVX512 void pack_contiguous_columns(const char* b, int64_t column, int64_t columns, int64_t k,
                                            int64_t units, float* to) {
  for (int64_t begin = 0; begin < tile_columns; begin += lanes) {
    for (int64_t unit = 0; unit < units; unit += lanes) {
      const int64_t bytes = std::min<int64_t>(64, (k - unit * per_unit<bf16>)*element_bytes<bf16>);
      const __mmask64 mask = bytes == 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
      __m512i r[lanes];
#pragma GCC unroll 16
      for (int64_t c = 0; c < lanes; ++c) {
        const char* const from = b + (begin + c) * column * element_bytes<bf16> + 4 * unit;
        r[c] = begin + c < columns ? _mm512_maskz_loadu_epi8(mask, from) : _mm512_setzero_si512();
      }
      transpose(r);
      const int64_t count = std::min(lanes, units - unit);
      for (int64_t i = 0; i < count; ++i) _mm512_store_si512(to + (unit + i) * tile_columns + begin, r[i]);
    }
  }
}

// Packs a panel of a b whose rows are contiguous.
STRETTO_AVX512 void pack_rows_of_fp32(const float* b, int64_t row, int64_t columns, int64_t units,
                                      float* to) {
  const __mmask16 low = first(columns), high = first(columns - lanes);
  for (int64_t unit = 0; unit < units; ++unit, b += row, to += tile_columns) {
    _mm512_store_ps(to, _mm512_maskz_loadu_ps(low, b));
    _mm512_store_ps(to + lanes, _mm512_maskz_loadu_ps(high, b + lanes));
  }
}

STRETTO_AVX512_INLINE __m512i load_wide(__mmask16 mask, const uint16_t* from) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
}

// Loads units of the elements at `from` and of the next row, which is zero if there is none.
STRETTO_AVX512_INLINE __m512i load_pairs(__mmask16 mask, const uint16_t* from, int64_t row, bool has_second) {
  const __m512i above = load_wide(mask, from);
  return has_second ? _mm512_or_si512(above, _mm512_slli_epi32(load_wide(mask, from + row), 16)) : above;
}

STRETTO_AVX512 void pack_rows_of_bf16(const uint16_t* b, int64_t row, int64_t columns, int64_t k,
                                      int64_t units, float* to) {
  const __mmask16 low = first(columns), high = first(columns - lanes);
  for (int64_t unit = 0; unit < units; ++unit, b += 2 * row, to += tile_columns) {
    const bool has_second = 2 * unit + 1 < k;
    _mm512_store_si512(to, load_pairs(low, b, row, has_second));
    _mm512_store_si512(to + lanes, load_pairs(high, b + lanes, row, has_second));
  }
}

// Packs a [rows, k] whose columns are contiguous, 12 rows after the other: to[rows / 12][unit][12]. A column
// is read 16 tiles at a time, because neighbouring tiles share its cache lines, and columns may be many pages
// apart.
template <bool bf16>
STRETTO_AVX512 void pack_a(const char* a, int64_t column, int64_t rows, int64_t k, int64_t units, float* to) {
  constexpr int64_t rows_at_once = 16 * tile_rows, units_ahead = 8;
  const __mmask16 all = first(tile_rows);
  for (int64_t begin = 0; begin < rows; begin += rows_at_once) {
    const int64_t end = std::min(rows, begin + rows_at_once);
    for (int64_t unit = 0; unit < units; ++unit) {
      const char* const from = a + unit * per_unit<bf16> * column * element_bytes<bf16>;
      const bool has_second = 2 * unit + 1 < k;
      for (int64_t i = begin; i < end; i += tile_rows) {
        const __mmask16 mask = first(std::min(tile_rows, rows - i));
        const char* const later = from + (units_ahead * per_unit<bf16> * column + i) * element_bytes<bf16>;
        _mm_prefetch(later, _MM_HINT_T0);
        if constexpr (bf16) _mm_prefetch(later + 2 * column, _MM_HINT_T0);
        __m512i x;
        if constexpr (bf16) {
          x = load_pairs(mask, reinterpret_cast<const uint16_t*>(from) + i, column, has_second);
        } else {
          x = _mm512_maskz_loadu_epi32(mask, from + 4 * i);
        }
        _mm512_mask_storeu_epi32(to + i * units + unit * tile_rows, all, x);
      }
    }
  }
}

template <bool bf16>
STRETTO_AVX512 void pack_b(const MatrixProduct& product, int64_t begin, int64_t from_k, int64_t k,
                           int64_t units, float* to) {
  const int64_t columns = std::min(tile_columns, product.n - begin);
  const char* const b = static_cast<const char*>(product.b) +
                        (from_k * product.b_row + begin * product.b_column) * element_bytes<bf16>;
  if (product.b_row == 1) {
    pack_contiguous_columns<bf16>(b, product.b_column, columns, k, units, to);
  } else if constexpr (bf16) {
    pack_rows_of_bf16(reinterpret_cast<const uint16_t*>(b), product.b_row, columns, k, units, to);
  } else {
    pack_rows_of_fp32(reinterpret_cast<const float*>(b), product.b_row, columns, units, to);
  }
}

// Rows [row, row + rows) of out, from `k` elements of k on.
template <bool bf16, bool packed>
STRETTO_AVX512 void multiply_block(const MatrixProduct& product, int64_t row, int64_t rows, int64_t from_k,
                                   int64_t k, float* packed_b, float* packed_a) {
  const int64_t units = units_of(k, bf16);
  const char* const a = static_cast<const char*>(product.a) +
                        (row * product.a_row + from_k * product.a_column) * element_bytes<bf16>;
  if constexpr (packed) pack_a<bf16>(a, product.a_column, rows, k, units, packed_a);
  const int64_t a_row = product.a_row * element_bytes<bf16>;
  for (int64_t column = 0; column < product.n; column += tile_columns) {
    pack_b<bf16>(product, column, from_k, k, units, packed_b);
    const int64_t left = product.n - column;
    for (int64_t i = 0; i < rows; i += tile_rows) {
      const int64_t at = (row + i) * product.out_row + column;
      const TileOut out = {.memory = static_cast<char*>(product.out) + at * (product.bf16_out ? 2 : 4),
                           .row = product.out_row,
                           .masks = {first(left), first(left - lanes)},
                           .bf16 = product.bf16_out,
                           .accumulate = product.accumulate || from_k > 0,
                           .bias = product.bias == nullptr || from_k > 0 ? nullptr : product.bias + column};
      const char* const tile = packed ? reinterpret_cast<const char*>(packed_a + i * units) : a + i * a_row;
      multiply_rows<bf16, packed>(std::min(tile_rows, rows - i), tile, a_row, packed_b, units, out);
    }
  }
}

// The units of k of each pass; the last one may have a few fewer.
int64_t units_per_pass(const MatrixProduct& product) {
  const bool rounds_sums = product.bf16_out;  // all of k at once, so that they are rounded once
  const int64_t most = product.a_by_columns && !rounds_sums ? most_packed_units : most_units;
  const int64_t units = units_of(product.k, product.bf16), passes = (units + most - 1) / most;
  return (units + passes - 1) / passes;
}

template <bool bf16>
void multiply_all(const MatrixProduct& product, float* scratch) {
  const auto block = product.a_by_columns ? multiply_block<bf16, true> : multiply_block<bf16, false>;
  const int64_t units = units_per_pass(product), at_once = units * per_unit<bf16>;
  float* const packed_a = scratch + units * tile_columns;
  for (int64_t from_k = 0; from_k < product.k; from_k += at_once) {
    const int64_t k = std::min(at_once, product.k - from_k);
    for (int64_t row = 0; row < product.m; row += most_rows)
      block(product, row, std::min(most_rows, product.m - row), from_k, k, scratch, packed_a);
  }
}

}  // namespace

bool has_matrix_product(bool bf16) {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 && (!bf16 || __builtin_cpu_supports("avx512bf16"));
}

size_t matrix_product_scratch(const MatrixProduct& product) {
  const int64_t units = units_per_pass(product);
  const int64_t rows = product.a_by_columns ? rounded_up(std::min(most_rows, product.m), tile_rows) : 0;
  return static_cast<size_t>(units * (tile_columns + rows)) * sizeof(float);
}

void matrix_product(const MatrixProduct& product, void* scratch) {
  auto* const memory = static_cast<float*>(scratch);
  product.bf16 ? multiply_all<true>(product, memory) : multiply_all<false>(product, memory);
}

}  // namespace stretto::kernels
#pragma GCC diagnostic pop

#else

namespace stretto::kernels {

bool has_matrix_product(bool) { return false; }
size_t matrix_product_scratch(const MatrixProduct&) { return 0; }
void matrix_product(const MatrixProduct&, void*) {}

}  // namespace stretto::kernels

#endif
