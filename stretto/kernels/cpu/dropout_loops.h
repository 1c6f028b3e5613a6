#pragma once

#include <cstdint>

namespace stretto::kernels {

// A row of a dropout mask: the words of Philox's counter other than the column.
struct RowCounter {
  uint32_t place;
  uint32_t sample_low;
  uint32_t sample_high_and_stream;
};

inline RowCounter row_counter(int64_t sample, int64_t place, int64_t stream) {
  const auto bits = static_cast<uint64_t>(sample);
  return {static_cast<uint32_t>(place), static_cast<uint32_t>(bits),
          static_cast<uint32_t>(bits >> 32) | static_cast<uint32_t>(stream) << 16};
}

// Elements whose random word is below `threshold` are dropped, the others multiplied by `scale`.
struct Drop {
  uint64_t key = 0;
  uint32_t threshold = 0;
  double scale = 1;
};

// out[i] = 0 or drop.scale of column first_column + i. REQUIRES: first_column is a multiple of 4.
void dropout_loop(float* out, int64_t first_column, int64_t columns, RowCounter row, const Drop& drop);

}  // namespace stretto::kernels
