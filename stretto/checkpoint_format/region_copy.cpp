#include "stretto/checkpoint_format/region_copy.h"

#include <algorithm>
#include <cstring>

namespace stretto::checkpoint_format {
namespace {

using Index = std::vector<int64_t>;

// The intersection of the boxes of two regions; its extents are empty if they are disjoint.
struct Box {
  Index begin;
  Index end;

  bool empty() const {
    for (size_t axis = 0; axis < begin.size(); ++axis) {
      if (begin[axis] >= end[axis]) return true;
    }
    return false;
  }
};

Box shared_box(const Region& a, const Region& b) {
  Box box;
  for (size_t axis = 0; axis < a.extent.size(); ++axis) {
    box.begin.push_back(std::max(a.offset[axis], b.offset[axis]));
    box.end.push_back(std::min(a.offset[axis] + a.extent[axis], b.offset[axis] + b.extent[axis]));
  }
  return box;
}

// The row-major position of a global index inside a region's box.
int64_t flat_index(const Region& region, const Index& index) {
  int64_t position = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    position = position * region.extent[axis] + (index[axis] - region.offset[axis]);
  }
  return position;
}

// Moves to the next row (all axes but the last) of the box; false after the last one.
bool next_row(const Box& box, Index& index) {
  for (size_t axis = index.size() - 1; axis-- > 0;) {
    if (++index[axis] < box.end[axis]) return true;
    index[axis] = box.begin[axis];
  }
  return false;
}

}  // namespace

int64_t copy_common(const Region& from, const std::byte* source, const Region& to, std::byte* target,
                    int64_t element_bytes) {
  const auto copy_run = [&](int64_t from_index, int64_t to_index, int64_t length) {
    // Indices count from the boxes' first elements; the regions contain only a part of the boxes.
    const int64_t skip = std::max({int64_t{0}, from.flat_begin - from_index, to.flat_begin - to_index});
    const int64_t count = std::min({length, from.flat_end - from_index, to.flat_end - to_index}) - skip;
    if (count <= 0) return int64_t{0};
    std::memcpy(target + (to_index + skip - to.flat_begin) * element_bytes,
                source + (from_index + skip - from.flat_begin) * element_bytes,
                static_cast<size_t>(count * element_bytes));
    return count;
  };

  if (from.offset == to.offset && from.extent == to.extent) {  // the usual case: one run
    return copy_run(0, 0, std::max(from.flat_end, to.flat_end));
  }
  const Box box = shared_box(from, to);
  if (box.empty()) return 0;
  int64_t copied = 0;
  Index index = box.begin;
  do {
    copied += copy_run(flat_index(from, index), flat_index(to, index), box.end.back() - box.begin.back());
  } while (next_row(box, index));
  return copied;
}

}  // namespace stretto::checkpoint_format
