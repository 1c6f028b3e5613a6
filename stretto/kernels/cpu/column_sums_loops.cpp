#include "stretto/kernels/cpu/column_sums_loops.h"

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/column_sums_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

// Four rows at a time, so that the sums are loaded and stored less often. The order of the additions is the
// same on every target.
template <class T>
HWY_INLINE void add_rows(const T* in, int64_t rows, int64_t width, Real<T>* sums) {
  const Lanes<Real<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const T* const first = in + row * width;
    for (int64_t c = 0; c < width; c += lanes) {
      const int64_t left = width - c;
      const auto values = [&](int64_t of) HWY_ATTR { return load_some(d, first + of * width + c, left); };
      const auto four = hn::Add(hn::Add(values(0), values(1)), hn::Add(values(2), values(3)));
      store_some(d, hn::Add(load_some(d, sums + c, left), four), sums + c, left);
    }
  }
  for (; row < rows; ++row) {
    for (int64_t c = 0; c < width; c += lanes) {
      const auto values = load_some(d, in + row * width + c, width - c);
      store_some(d, hn::Add(load_some(d, sums + c, width - c), values), sums + c, width - c);
    }
  }
}

void column_sums_f32(const float* in, int64_t rows, int64_t width, float* sums) {
  add_rows(in, rows, width, sums);
}
void column_sums_bf16(const Bf16* in, int64_t rows, int64_t width, float* sums) {
  add_rows(in, rows, width, sums);
}
void column_sums_f64(const double* in, int64_t rows, int64_t width, double* sums) {
  add_rows(in, rows, width, sums);
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(column_sums_f32);
HWY_EXPORT(column_sums_bf16);
HWY_EXPORT(column_sums_f64);

}  // namespace

void column_sums_loop(const float* in, int64_t rows, int64_t width, float* sums) {
  HWY_DYNAMIC_DISPATCH(column_sums_f32)(in, rows, width, sums);
}
void column_sums_loop(const Bf16* in, int64_t rows, int64_t width, float* sums) {
  HWY_DYNAMIC_DISPATCH(column_sums_bf16)(in, rows, width, sums);
}
void column_sums_loop(const double* in, int64_t rows, int64_t width, double* sums) {
  HWY_DYNAMIC_DISPATCH(column_sums_f64)(in, rows, width, sums);
}

}  // namespace stretto::kernels
#endif
