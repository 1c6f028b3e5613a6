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

}  // namespace stretto
