#include "stretto/kernels/cpu/dropout_loops.h"

#include "stretto/kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stretto/kernels/cpu/dropout_loops.cpp"
#include <hwy/foreach_target.h>

#include "stretto/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stretto::kernels::HWY_NAMESPACE {

void dropout_row(float* out, int64_t first_column, int64_t columns, RowCounter row, const Drop& drop) {
  constexpr int64_t at_once = 256;
  uint32_t words[at_once + spare_words];
  for (int64_t first = 0; first < columns; first += at_once) {
    const int64_t count = HWY_MIN(at_once, columns - first);
    philox_words(words, (first_column + first) / 4, at_once / 4, (count + 3) / 4, row, drop.key);
    words_to_scales(words, count, drop, out + first);
  }
}

}  // namespace stretto::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stretto::kernels {

HWY_EXPORT(dropout_row);

void dropout_loop(float* out, int64_t first_column, int64_t columns, RowCounter row, const Drop& drop) {
  HWY_DYNAMIC_DISPATCH(dropout_row)(out, first_column, columns, row, drop);
}

}  // namespace stretto::kernels
#endif
