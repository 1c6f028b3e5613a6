#include "stretto/checkpoint_format/tiling.h"

#include <map>

#include "stretto/base/error.h"

namespace stretto::checkpoint_format {
namespace {

using Index = std::vector<int64_t>;

constexpr size_t most_axes = 8;  // a box has 2^axes corners

// The number of regions that cover each index, represented by its mixed differences, which are nonzero at the
// corners of boxes only. The number at an index is the sum of the differences at all indices that are not
// larger on any axis.
class Coverage {
 public:
  void add(const Region& region, int64_t times) {
    if (region.elements() == 0) return;
    add_first(region, region.flat_end, times);
    add_first(region, region.flat_begin, -times);
  }

  // The numbers before the first index with a nonzero difference are zero, so the number there equals that
  // difference.
  std::optional<Miscovered> first_not_zero() const {
    for (const auto& [place, difference] : differences_) {
      if (difference != 0) return Miscovered{place, difference};
    }
    return std::nullopt;
  }

 private:
  // Adds the first `count` elements of a region's box: whole rows along the first axis, then whole rows of
  // the remaining one, recursively.
  void add_first(const Region& region, int64_t count, int64_t times) {
    Index begin = region.offset, end = region.offset;
    int64_t row = 1;  // elements per index of an axis
    for (size_t axis = 0; axis < end.size(); ++axis) {
      end[axis] += region.extent[axis];
      row *= region.extent[axis];
    }
    for (size_t axis = 0; axis < end.size(); ++axis) {
      row /= region.extent[axis];
      end[axis] = begin[axis] + count / row;
      add_box(begin, end, times);
      count %= row;
      if (count == 0) return;  // otherwise there is a further row, so that the next line cannot overflow
      begin[axis] = end[axis]++;
    }
    if (count > 0) add_box(begin, end, times);  // a scalar
  }

  void add_box(const Index& begin, const Index& end, int64_t times) {
    for (size_t corner = 0; corner < size_t{1} << begin.size(); ++corner) {
      Index place = begin;
      int64_t sign = times;
      for (size_t axis = 0; axis < begin.size(); ++axis) {
        if ((corner >> axis & 1) == 0) continue;
        place[axis] = end[axis];
        sign = -sign;
      }
      differences_[place] += sign;
    }
  }

  std::map<Index, int64_t> differences_;
};

}  // namespace

std::optional<Miscovered> first_miscovered(const std::vector<int64_t>& shape,
                                           std::span<const Region> regions) {
  const Region whole = whole_region(shape);
  if (regions.size() == 1 && regions[0] == whole) return std::nullopt;
  if (shape.size() > most_axes) {
    throw DataError("a tensor of {} axes must lie in one piece; up to {} may lie in several", shape.size(),
                    most_axes);
  }
  Coverage surplus;
  surplus.add(whole, -1);
  for (const Region& region : regions) surplus.add(region, 1);
  auto found = surplus.first_not_zero();
  if (found) ++found->regions;
  return found;
}

bool contains(const Region& region, const std::vector<int64_t>& element) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < element.size(); ++axis) {
    const int64_t inside = element[axis] - region.offset[axis];
    if (inside < 0 || inside >= region.extent[axis]) return false;
    flat = flat * region.extent[axis] + inside;
  }
  return region.flat_begin <= flat && flat < region.flat_end;
}

}  // namespace stretto::checkpoint_format
