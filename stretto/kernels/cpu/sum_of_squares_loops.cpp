#include "stretto/kernels/cpu/sum_of_squares_loops.h"

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/sum_of_squares_loops.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

double sum_of_squares_f32(const float* x, int64_t n) {
  using D = Lanes<double>;
  const D d;
  const hn::Rebind<float, D> narrow;
  constexpr int64_t sums = 16;  // the same on every target, so that all add in the same order
  constexpr auto step = static_cast<int64_t>(hn::MaxLanes(D()));
  constexpr int64_t ahead = 2048;  // elements to prefetch, which hides the latency of memory
  hn::Vec<D> vectors[sums / step];
  for (auto& vector : vectors) vector = hn::Zero(d);
  int64_t i = 0;
  for (; i + sums <= n; i += sums) {
    hwy::Prefetch(x + (i + ahead < n ? i + ahead : i));
    for (int64_t v = 0; v < sums / step; ++v) {
      const auto value = hn::PromoteTo(d, hn::LoadU(narrow, x + i + v * step));
      vectors[v] = hn::MulAdd(value, value, vectors[v]);
    }
  }
  double lanes[sums];
  for (int64_t v = 0; v < sums / step; ++v) hn::StoreU(vectors[v], d, lanes + v * step);
  double total = 0;
  for (const double sum : lanes) total += sum;
  for (; i < n; ++i) total += static_cast<double>(x[i]) * x[i];
  return total;
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(sum_of_squares_f32);

}  // namespace

double sum_of_squares_loop(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares_f32)(x, n);
}

}  // namespace stretto::kernels
#endif
