#include "stretto/kernels/cpu/round_loops.h"

#include "stretto/kernels/cpu/multiarch.h"
#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/round_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

void round_to_bf16(const float* from, Bf16* to, int64_t n) {
  const Lanes<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(d, hn::LoadU(d, from + i), to + i);
  if (i < n) store_some(d, load_some(d, from + i, n - i), to + i, n - i);
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(round_to_bf16);

}  // namespace

void round_loop(const float* from, Bf16* to, int64_t n) { HWY_DYNAMIC_DISPATCH(round_to_bf16)(from, to, n); }

STRETTO_MULTIARCH void round_loop(const float* from, F16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) narrow(from[i], to[i]);
}

}  // namespace stretto::kernels
#endif
