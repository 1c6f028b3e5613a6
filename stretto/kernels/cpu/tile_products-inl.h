// Products of tiles that are in the cache. Included once per target (Highway's foreach_target.h).
#if defined(STRETTO_KERNELS_TILE_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STRETTO_KERNELS_TILE_PRODUCTS_INL_H
#undef STRETTO_KERNELS_TILE_PRODUCTS_INL_H
#else
#define STRETTO_KERNELS_TILE_PRODUCTS_INL_H
#endif

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

// `rows` rows of c[., n] += a[., k] b[k, n], with n a multiple of the lanes. Element (i, p) of a is a[i *
// a_row + p * a_col].
template <int rows, class R>
HWY_INLINE void multiply_add_rows(R* HWY_RESTRICT c, int64_t c_row, const R* HWY_RESTRICT a, int64_t a_row,
                                  int64_t a_col, const R* HWY_RESTRICT b, int64_t b_row, int64_t k,
                                  int64_t n) {
  const Lanes<R> d;
  using V = hn::Vec<Lanes<R>>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    V left[rows], right[rows];
    for (int i = 0; i < rows; ++i) {
      left[i] = hn::LoadU(d, c + i * c_row + j);
      right[i] = hn::LoadU(d, c + i * c_row + j + lanes);
    }
    for (int64_t p = 0; p < k; ++p) {
      const V b_left = hn::LoadU(d, b + p * b_row + j), b_right = hn::LoadU(d, b + p * b_row + j + lanes);
      for (int i = 0; i < rows; ++i) {
        const V value = hn::Set(d, a[i * a_row + p * a_col]);
        left[i] = hn::MulAdd(value, b_left, left[i]);
        right[i] = hn::MulAdd(value, b_right, right[i]);
      }
    }
    for (int i = 0; i < rows; ++i) {
      hn::StoreU(left[i], d, c + i * c_row + j);
      hn::StoreU(right[i], d, c + i * c_row + j + lanes);
    }
  }
  if (j < n) {
    V sums[rows];
    for (int i = 0; i < rows; ++i) sums[i] = hn::LoadU(d, c + i * c_row + j);
    for (int64_t p = 0; p < k; ++p) {
      const V values = hn::LoadU(d, b + p * b_row + j);
      for (int i = 0; i < rows; ++i)
        sums[i] = hn::MulAdd(hn::Set(d, a[i * a_row + p * a_col]), values, sums[i]);
    }
    for (int i = 0; i < rows; ++i) hn::StoreU(sums[i], d, c + i * c_row + j);
  }
}

// m rows of c[., n] += a[., k] b[k, n], as above.
template <class R>
HWY_INLINE void multiply_add(R* c, int64_t c_row, const R* a, int64_t a_row, int64_t a_col, const R* b,
                             int64_t b_row, int64_t m, int64_t k, int64_t n) {
  int64_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3  // 32 registers
  for (; i + 8 <= m; i += 8) {
    multiply_add_rows<8>(c + i * c_row, c_row, a + i * a_row, a_row, a_col, b, b_row, k, n);
  }
#endif
  for (; i + 4 <= m; i += 4) {
    multiply_add_rows<4>(c + i * c_row, c_row, a + i * a_row, a_row, a_col, b, b_row, k, n);
  }
  if (m - i >= 2) {
    multiply_add_rows<2>(c + i * c_row, c_row, a + i * a_row, a_row, a_col, b, b_row, k, n);
    i += 2;
  }
  if (i < m) multiply_add_rows<1>(c + i * c_row, c_row, a + i * a_row, a_row, a_col, b, b_row, k, n);
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
