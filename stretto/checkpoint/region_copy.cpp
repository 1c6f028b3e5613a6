#include "stretto/checkpoint/region_copy.h"

#include <algorithm>
#include <cstring>

namespace stretto::checkpoint {
namespace {

using archive::Region;
using Index = std::vector<int64_t>;

// The box that both regions' boxes share; empty extents where they share nothing.
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

// The row-major place of a global index inside a region's box.
int64_t flat_place(const Region& region, const Index& index) {
  int64_t place = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    place = place * region.extent[axis] + (index[axis] - region.offset[axis]);
  }
  return place;
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
  const auto copy_run = [&](int64_t from_place, int64_t to_place, int64_t length) {
    // Places count from the boxes' first elements; the regions hold only a part of them.
    const int64_t skip = std::max({int64_t{0}, from.flat_begin - from_place, to.flat_begin - to_place});
    const int64_t count = std::min({length, from.flat_end - from_place, to.flat_end - to_place}) - skip;
    if (count <= 0) return int64_t{0};
    std::memcpy(target + (to_place + skip - to.flat_begin) * element_bytes,
                source + (from_place + skip - from.flat_begin) * element_bytes,
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
    copied += copy_run(flat_place(from, index), flat_place(to, index), box.end.back() - box.begin.back());
  } while (next_row(box, index));
  return copied;
}

}  // namespace stretto::checkpoint
