#include "stretto/kernels/cpu/reduce_loops.h"
#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/sum_bf16_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

void sum_bf16(const ReduceOperands<Bf16>& operands) {
  const Lanes<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < operands.n; i += lanes) {
    const int64_t left = operands.n - i;
    const auto values = [&](int source) HWY_ATTR {
      return load_some(d, static_cast<const Bf16*>(operands.in[source]) + i, left);
    };
    auto sum = values(0);
    for (int source = 1; source < operands.ins; ++source) sum = hn::Add(sum, values(source));
    for (int destination = 0; destination < operands.outs; ++destination)
      store_some(d, sum, static_cast<Bf16*>(operands.out[destination]) + i, left);
  }
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {
namespace {

HWY_EXPORT(sum_bf16);

}  // namespace

void sum_loop(const ReduceOperands<Bf16>& operands) { HWY_DYNAMIC_DISPATCH(sum_bf16)(operands); }

}  // namespace stretto::kernels
#endif
