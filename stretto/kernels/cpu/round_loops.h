#pragma once

#include <cstdint>

#include "stretto/kernels/cpu/half.h"

namespace stretto::kernels {

// to[i] = from[i] for i < n, to the nearest, ties to even.
void round_loop(const float* from, Bf16* to, int64_t n);
void round_loop(const float* from, F16* to, int64_t n);

}  // namespace stretto::kernels
