#pragma once

#include <cstdint>

// Include this before Highway's headers: loops are compiled for the baseline, AVX2 and AVX512. More targets
// would only make the program larger.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

namespace stretto::kernels {

constexpr int64_t largest_vector = 64;  // bytes, of any target

}  // namespace stretto::kernels
