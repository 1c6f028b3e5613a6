#include "stretto/kernels/cpu/few_rows_loops.h"

#include "stretto/kernels/cpu/few_rows_pairs.h"
#include "stretto/kernels/cpu/few_rows_tiles.h"
#include "stretto/kernels/cpu/pair_products.h"
#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/few_rows_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

using D = Lanes<float>;
using V = hn::Vec<D>;

// Sums in registers: 8 of 16 registers, or 16 of 32.
constexpr int most_sums = HWY_MAX_BYTES == 64 ? 16 : 8;

// The distance of prefetches, in columns of b, or rows, and where a single row is read, in numbers.
constexpr int ahead = 8, numbers_ahead = 3072;

// Two successive bf16 numbers in each lane, as fp32: the first ones and the second ones.
HWY_INLINE void load_pairs(const uint16_t* from, V& first, V& second) {
  const D d;
  const hn::RebindToUnsigned<D> bits;
  const auto pairs = hn::LoadU(bits, reinterpret_cast<const uint32_t*>(from));
  first = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
  second = hn::BitCast(d, hn::And(pairs, hn::Set(bits, 0xffff0000)));
}

HWY_INLINE float one(const float* from) { return *from; }
HWY_INLINE float one(const uint16_t* from) { return number(Bf16{*from}); }

// --- columns of b are contiguous: each sum is a dot product

// Adds, to `rest`, the products of the numbers from `from` on, which do not fill a vector. Its loops are not
// unrolled for each m and `columns`: that took half of the time in which this file compiles.
template <class T>
HWY_NOINLINE void add_rest(const FewRowsProduct& product, const T* b, int64_t from, int64_t m,
                           int64_t columns, float* rest) {
  for (int64_t i = from; i < product.k; ++i) {
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        rest[r * columns + c] += product.a[r * product.k + i] * one(b + c * product.b_stride + i);
    }
  }
}

// m rows of a times `columns` columns of b. pairs: the first numbers of a row's pairs, then the second ones,
// padded to vectors.
template <int m, int columns>
HWY_INLINE void dot(const FewRowsProduct& product, const float* pairs, int64_t padded_pairs, int64_t column) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t k = product.k, stride = product.b_stride;
  V sums[m][columns];
#pragma GCC unroll 8
  for (int r = 0; r < m; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) sums[r][c] = hn::Zero(d);
  int64_t i = 0;
  float rest[m * columns] = {};
  if (product.bf16) {
    const auto* const b = static_cast<const uint16_t*>(product.b) + column * stride;
    for (; i + 2 * lanes <= k; i += 2 * lanes) {
      V first[columns], second[columns];
#pragma GCC unroll 8
      for (int c = 0; c < columns; ++c) {
        __builtin_prefetch(b + (c + ahead) * stride + i);
        load_pairs(b + c * stride + i, first[c], second[c]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < m; ++r) {
        const float* const x = pairs + 2 * r * padded_pairs + i / 2;
        const V x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + padded_pairs);
#pragma GCC unroll 8
        for (int c = 0; c < columns; ++c)
          sums[r][c] = hn::MulAdd(second[c], x1, hn::MulAdd(first[c], x0, sums[r][c]));
      }
    }
    if (i < k) add_rest(product, b, i, m, columns, rest);
  } else {
    const auto* const b = static_cast<const float*>(product.b) + column * stride;
    for (; i + lanes <= k; i += lanes) {
      V x[m];
#pragma GCC unroll 8
      for (int r = 0; r < m; ++r) x[r] = hn::LoadU(d, product.a + r * k + i);
#pragma GCC unroll 8
      for (int c = 0; c < columns; ++c) {
        __builtin_prefetch(b + (c + ahead) * stride + i);
        const V y = hn::LoadU(d, b + c * stride + i);
#pragma GCC unroll 8
        for (int r = 0; r < m; ++r) sums[r][c] = hn::MulAdd(x[r], y, sums[r][c]);
      }
    }
    if (i < k) add_rest(product, b, i, m, columns, rest);
  }
#pragma GCC unroll 8
  for (int r = 0; r < m; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c)
      product.sums[r * product.n + column + c] =
          hn::GetLane(hn::SumOfLanes(d, sums[r][c])) + rest[r * columns + c];
}

template <int m>
HWY_INLINE void dot_columns(const FewRowsProduct& product, int64_t first, int64_t last, float* pairs) {
  constexpr int columns = most_sums / m >= 8 ? 8 : most_sums / m >= 4 ? 4 : most_sums / m >= 2 ? 2 : 1;
  const int64_t padded_pairs = padded<float>((product.k + 1) / 2);
  if (product.bf16) {
#pragma GCC unroll 8
    for (int r = 0; r < m; ++r) {
      for (int64_t i = 0; i < product.k; ++i)
        pairs[(2 * r + i % 2) * padded_pairs + i / 2] = product.a[r * product.k + i];
    }
  }
  int64_t column = first;
  for (; column + columns <= last; column += columns) dot<m, columns>(product, pairs, padded_pairs, column);
  for (; column < last; ++column) dot<m, 1>(product, pairs, padded_pairs, column);
}

// --- rows of b are contiguous: multiples of them are added to the sums

// What add_rows() does, for the columns from `from` on, which do not fill its vectors. Not unrolled, as
// above.
template <class T>
HWY_NOINLINE void add_last_columns(const FewRowsProduct& product, const float* a, const T* b, int64_t from,
                                   int64_t n, int64_t m, int64_t rows, float* sums, int64_t width) {
  constexpr bool pairs = sizeof(T) == sizeof(uint16_t);
  for (int64_t j = from; j < n; ++j) {
    for (int64_t r = 0; r < m; ++r) {
      float& sum = sums[r * width + (pairs ? j % 2 * (width / 2) + j / 2 : j)];
      for (int64_t i = 0; i < rows; ++i) sum += a[r * product.k + i] * one(b + i * product.b_stride + j);
    }
  }
}

// Adds `rows` rows of b from `row` on. sums: m rows of `width` numbers; for bf16 the first numbers of all
// pairs of columns, then the second ones.
template <int m, int rows>
HWY_INLINE void add_rows(const FewRowsProduct& product, int64_t row, int64_t first, int64_t last, float* sums,
                         int64_t width) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = product.b_stride;
  const float* const a = product.a + row;
  const int64_t n = last - first;
  int64_t j = 0;
  if (product.bf16) {
    const auto* const b = static_cast<const uint16_t*>(product.b) + row * stride + first;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
      V evens[m], odds[m];
#pragma GCC unroll 8
      for (int r = 0; r < m; ++r) {
        evens[r] = hn::LoadU(d, sums + r * width + j / 2);
        odds[r] = hn::LoadU(d, sums + r * width + width / 2 + j / 2);
      }
#pragma GCC unroll 8
      for (int i = 0; i < rows; ++i) {
        V even, odd;
        __builtin_prefetch(b + (i + ahead) * stride + j);
        load_pairs(b + i * stride + j, even, odd);
#pragma GCC unroll 8
        for (int r = 0; r < m; ++r) {
          const V x = hn::Set(d, a[r * product.k + i]);
          evens[r] = hn::MulAdd(x, even, evens[r]);
          odds[r] = hn::MulAdd(x, odd, odds[r]);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < m; ++r) {
        hn::StoreU(evens[r], d, sums + r * width + j / 2);
        hn::StoreU(odds[r], d, sums + r * width + width / 2 + j / 2);
      }
    }
    if (j < n) add_last_columns(product, a, b, j, n, m, rows, sums, width);
    return;
  }
  const auto* const b = static_cast<const float*>(product.b) + row * stride + first;
  for (; j + lanes <= n; j += lanes) {
    V sum[m];
#pragma GCC unroll 8
    for (int r = 0; r < m; ++r) sum[r] = hn::LoadU(d, sums + r * width + j);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      __builtin_prefetch(rows == 1 ? b + j + numbers_ahead : b + (i + ahead) * stride + j);
      const V y = hn::LoadU(d, b + i * stride + j);
#pragma GCC unroll 8
      for (int r = 0; r < m; ++r) sum[r] = hn::MulAdd(hn::Set(d, a[r * product.k + i]), y, sum[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < m; ++r) hn::StoreU(sum[r], d, sums + r * width + j);
  }
  if (j < n) add_last_columns(product, a, b, j, n, m, rows, sums, width);
}

template <int m>
HWY_INLINE void add_columns(const FewRowsProduct& product, int64_t first, int64_t last, float* sums) {
  constexpr int rows = 8;
  const int64_t n = last - first, width = 2 * padded<float>((n + 1) / 2);
  zero(sums, m * width);
  int64_t row = 0;
  const bool one_stream = m == 1 && !product.bf16;  // faster: memory is read in its order
  for (; !one_stream && row + rows <= product.k; row += rows)
    add_rows<m, rows>(product, row, first, last, sums, width);
  for (; row < product.k; ++row) add_rows<m, 1>(product, row, first, last, sums, width);
#pragma GCC unroll 8
  for (int r = 0; r < m; ++r) {
    float* const to = product.sums + r * product.n + first;
    const float* const from = sums + r * width;
    for (int64_t j = 0; j < n; ++j) to[j] = product.bf16 ? from[j % 2 * (width / 2) + j / 2] : from[j];
  }
}

template <int m>
HWY_INLINE void multiply_rows(const FewRowsProduct& product, int64_t first, int64_t last, float* scratch) {
  if (product.b_by_columns) {
    dot_columns<m>(product, first, last, scratch);
  } else {
    add_columns<m>(product, first, last, scratch);
  }
}

void few_rows_loop(const FewRowsProduct& product, int64_t first, int64_t last, float* scratch) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (product.tiles) return few_rows_tiles(product, first, last, scratch);
  if (product.bf16 && has_pair_products()) return few_rows_pairs(product, first, last, scratch);
#endif
  switch (product.m) {
    case 1:
      return multiply_rows<1>(product, first, last, scratch);
    case 2:
      return multiply_rows<2>(product, first, last, scratch);
    case 3:
      return multiply_rows<3>(product, first, last, scratch);
    case 4:
      return multiply_rows<4>(product, first, last, scratch);
    case 5:
      return multiply_rows<5>(product, first, last, scratch);
    case 6:
      return multiply_rows<6>(product, first, last, scratch);
    case 7:
      return multiply_rows<7>(product, first, last, scratch);
    default:
      return multiply_rows<8>(product, first, last, scratch);
  }
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

int64_t rounded_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

}  // namespace

HWY_EXPORT(few_rows_loop);

size_t few_rows_scratch(const FewRowsProduct& product, int64_t columns) {
  const int64_t numbers = product.b_by_columns ? (product.bf16 ? product.k : 0) : columns;
  const auto bytes = static_cast<size_t>(product.m * 2 * rounded_up((numbers + 1) / 2, 16)) * sizeof(float);
  if (product.tiles) return few_rows_tiles_scratch(product, columns);
  return product.bf16 ? HWY_MAX(bytes, few_rows_pairs_scratch(product, columns)) : bytes;
}

void few_rows_product(const FewRowsProduct& product, int64_t first, int64_t last, void* scratch) {
  HWY_DYNAMIC_DISPATCH(few_rows_loop)(product, first, last, static_cast<float*>(scratch));
}

}  // namespace stretto::kernels
#endif
