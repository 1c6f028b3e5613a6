#pragma once

#include <cstdint>

#include "stretto/kernels/cpu/numbers.h"

namespace stretto::kernels {

// Adds the sum of each column of in [rows, width] to sums [width].
void column_sums_loop(const float* in, int64_t rows, int64_t width, float* sums);
void column_sums_loop(const Bf16* in, int64_t rows, int64_t width, float* sums);
void column_sums_loop(const double* in, int64_t rows, int64_t width, double* sums);

}  // namespace stretto::kernels
