#pragma once

#include <span>

namespace stretto::metrics {

// The sum of `values` in the order in which numpy.sum adds contiguous doubles (pairwise, in blocks of eight),
// so that means equal those of tools that use numpy to the last bit.
inline double numpy_sum(std::span<const double> values) {
  const size_t size = values.size();
  if (size < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (size > 128) {
    size_t half = size / 2;
    half -= half % 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  double lanes[8];
  for (size_t i = 0; i < 8; ++i) lanes[i] = values[i];
  size_t i = 8;
  for (; i < size - size % 8; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] += values[i + lane];
  double sum =
      ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  for (; i < size; ++i) sum += values[i];
  return sum;
}

}  // namespace stretto::metrics
