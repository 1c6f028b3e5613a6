#pragma once

#include <cstdint>

namespace stretto::kernels {

// In double.
double sum_of_squares_loop(const float* x, int64_t n);

}  // namespace stretto::kernels
