#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stretto {

// Row-major elements [flat_begin, flat_end) of the box at `offset` with `extent` in a global tensor: a whole
// tensor, a flat shard, rows or columns.
struct Region {
  std::vector<int64_t> offset;
  std::vector<int64_t> extent;
  int64_t flat_begin = 0;
  int64_t flat_end = 0;

  int64_t elements() const { return flat_end - flat_begin; }
  bool operator==(const Region&) const = default;
};

// The number of elements of a tensor of this shape; nullopt for a negative size, or if the number or a stride
// overflows, as strides of an empty tensor may.
std::optional<int64_t> checked_elements(const std::vector<int64_t>& shape);

// The same. Throws DataError instead of nullopt.
int64_t count_elements(const std::vector<int64_t>& shape);

// The region of a whole tensor. Throws like count_elements.
Region whole_region(const std::vector<int64_t>& shape);

// The row-major elements [flat_begin, flat_end) of a tensor.
Region flat_region(const std::vector<int64_t>& shape, int64_t flat_begin, int64_t flat_end);

}  // namespace stretto
