#include "stretto/kernels/cpu/sum_of_squares_loops.h"

#include "stretto/kernels/cpu/multiarch.h"

namespace stretto::kernels {

STRETTO_MULTIARCH double sum_of_squares_loop(const float* x, int64_t n) {
  constexpr int64_t lanes = 16;
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < n; ++i) total += static_cast<double>(x[i]) * x[i];
  return total;
}

}  // namespace stretto::kernels
