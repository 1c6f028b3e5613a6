#pragma once

#include <algorithm>
#include <cstdint>

namespace stretto {

// Elements [begin, end) of a buffer, or of an axis of a tensor.
struct Range {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
  Range operator&(const Range& other) const {
    const int64_t from = std::max(begin, other.begin);
    return {from, std::max(from, std::min(end, other.end))};
  }
  Range shifted(int64_t by) const { return {begin + by, end + by}; }
  bool operator==(const Range&) const = default;
};

// The begin of part number `part` if `size` items are divided into `parts` whose sizes differ by at most one.
// Smaller parts come first. `part` == `parts` gives `size`.
inline int64_t begin_of_part(int64_t size, int64_t parts, int64_t part) {
  const int64_t larger = size % parts, smaller = parts - larger;
  return part * (size / parts) + std::max<int64_t>(0, part - smaller);
}

// Part number `part` of them.
inline Range part_range(int64_t size, int64_t parts, int64_t part) {
  return {begin_of_part(size, parts, part), begin_of_part(size, parts, part + 1)};
}

}  // namespace stretto
