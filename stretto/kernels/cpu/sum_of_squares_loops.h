#pragma once

#include <cstdint>

namespace stretto::kernels {

// The sum of squares of x, in double.
double sum_of_squares_loop(const float* x, int64_t n);

}  // namespace stretto::kernels
