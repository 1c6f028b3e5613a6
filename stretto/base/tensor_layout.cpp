#include "stretto/base/tensor_layout.h"

#include <algorithm>
#include <functional>
#include <set>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"

namespace stretto {
namespace {

using Sizes = std::vector<int64_t>;

// Part of a local tensor that is a box in the global one too.
struct Box {
  Sizes local, global;  // offsets
  Sizes extent;
};

// Returns one box for each combination of intervals of the cut axes.
std::vector<Box> all_boxes(const TensorLayout& layout) {
  const Sizes zeros(layout.global.size(), 0);
  std::vector<Box> boxes = {{zeros, zeros, layout.global}};
  for (const Cut& cut : layout.cuts) {
    const auto axis = static_cast<size_t>(cut.axis);
    std::vector<Box> parts;
    for (const Box& box : boxes) {
      int64_t local = 0;
      for (const Range& interval : cut.intervals) {
        Box& part = parts.emplace_back(box);
        part.local[axis] = local;
        part.global[axis] = interval.begin;
        part.extent[axis] = interval.size();
        local += interval.size();
      }
    }
    boxes = std::move(parts);
  }
  return boxes;
}

Sizes row_major_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t axis = sizes.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
  return strides;
}

// The number of the box's elements that come before the local element `flat`. The order is the same in the
// box and in the local tensor.
int64_t elements_before(const Box& box, const Sizes& strides, int64_t flat) {
  if (box.extent.empty()) return flat;  // a scalar
  int64_t rest = 1, before = 0;
  for (const int64_t size : box.extent) rest *= size;
  for (size_t axis = 0; axis < box.extent.size(); ++axis) {
    rest /= box.extent[axis];
    const int64_t index = flat / strides[axis] - box.local[axis];
    flat %= strides[axis];
    before += std::clamp<int64_t>(index, 0, box.extent[axis]) * rest;
    if (index < 0 || index >= box.extent[axis]) break;
  }
  return before;
}

// Whether the box's elements are contiguous in the local tensor.
bool is_dense(const Box& box, const Sizes& local) {
  size_t whole = local.size();  // the axes from here on are whole
  while (whole > 0 && box.extent[whole - 1] == local[whole - 1]) --whole;
  for (size_t axis = 0; axis + 1 < whole; ++axis)
    if (box.extent[axis] != 1) return false;
  return true;
}

int64_t first_element(const Box& box, const Sizes& strides) {
  int64_t first = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) first += box.local[axis] * strides[axis];
  return first;
}

LocalBox view_of(const Box& box, const Sizes& strides) {
  return {{box.global, box.extent, 0, count_elements(box.extent)},
          first_element(box, strides),
          box.extent,
          strides};
}

// Elements [begin, end) of the box's rows from `axis` on as whole boxes: the rest of the row at which they
// begin, whole rows, and the start of the one in which they end.
void add_rows(const Box& box, const Sizes& strides, size_t axis, int64_t begin, int64_t end,
              std::vector<LocalBox>& found) {
  if (begin == end) return;
  int64_t row = 1;
  for (size_t below = axis + 1; below < box.extent.size(); ++below) row *= box.extent[below];
  const auto rows = [&](int64_t from, int64_t count) {
    Box part = box;
    part.local[axis] += from;
    part.global[axis] += from;
    part.extent[axis] = count;
    return part;
  };
  int64_t first = begin / row;
  const int64_t last = end / row;
  if (first == last) return add_rows(rows(first, 1), strides, axis + 1, begin % row, end % row, found);
  if (begin % row != 0) add_rows(rows(first++, 1), strides, axis + 1, begin % row, row, found);
  if (first < last) found.push_back(view_of(rows(first, last - first), strides));
  if (end % row != 0) add_rows(rows(last, 1), strides, axis + 1, 0, end % row, found);
}

}  // namespace

Sizes TensorLayout::local() const {
  Sizes sizes = global;
  for (const Cut& cut : cuts) {
    int64_t& size = sizes[static_cast<size_t>(cut.axis)] = 0;
    for (const Range& interval : cut.intervals) size += interval.size();
  }
  return sizes;
}

int64_t TensorLayout::slot() const {
  Sizes sizes = global;
  for (const Cut& cut : cuts) sizes[static_cast<size_t>(cut.axis)] = cut.largest;
  return count_elements(sizes);
}

std::vector<LocalBox> TensorLayout::boxes(int64_t begin, int64_t end) const {
  std::vector<LocalBox> found;
  if (begin == end) return found;
  const Sizes sizes = local(), strides = row_major_strides(sizes);
  for (const Box& box : all_boxes(*this)) {
    if (count_elements(box.extent) == 0) continue;
    const int64_t from = elements_before(box, strides, begin), to = elements_before(box, strides, end);
    if (from == to) continue;
    if (is_dense(box, sizes)) {
      found.push_back(
          {{box.global, box.extent, from, to}, first_element(box, strides) + from, {to - from}, {1}});
    } else {
      add_rows(box, strides, 0, from, to, found);
    }
  }
  return found;
}

std::vector<LocalRun> TensorLayout::runs() const {
  if (count_elements(local()) == 0) return {};
  if (cuts.empty()) return {{0, 0, count_elements(global)}};
  const Sizes strides = row_major_strides(global);
  std::vector<std::vector<Range>> intervals;
  for (const int64_t size : global) intervals.push_back({{0, size}});
  size_t last = 0;  // the axes after the last one that is cut are whole
  for (const Cut& cut : cuts) {
    intervals[static_cast<size_t>(cut.axis)] = cut.intervals;
    last = std::max(last, static_cast<size_t>(cut.axis));
  }
  std::vector<LocalRun> found;
  int64_t local = 0;
  const std::function<void(size_t, int64_t)> add = [&](size_t axis, int64_t first) {
    for (const Range& interval : intervals[axis]) {
      if (axis == last) {
        const int64_t elements = interval.size() * strides[axis];
        if (elements > 0) found.push_back({local, first + interval.begin * strides[axis], elements});
        local += elements;
        continue;
      }
      for (int64_t i = interval.begin; i < interval.end; ++i) add(axis + 1, first + i * strides[axis]);
    }
  };
  add(0, 0);
  return found;
}

TensorLayout TensorLayout::collapsed(int axis) const {
  if (axis < 0) axis += static_cast<int>(global.size());
  TensorLayout layout = *this;
  layout.global[static_cast<size_t>(axis)] = 1;
  std::erase_if(layout.cuts, [&](const Cut& cut) { return cut.axis == axis; });
  return layout;
}

void TensorLayout::check() const {
  std::set<int> axes;
  Axes over;
  for (const Cut& cut : cuts) {
    if (cut.axis < 0 || cut.axis >= std::ssize(global)) {
      throw DataError("a tensor of {} axes is cut along axis {}", global.size(), cut.axis);
    }
    if (!axes.insert(cut.axis).second || over.has(cut.over)) {
      throw DataError(
          "axis {} of a tensor is cut over {}, but this axis, or another one over {}, is cut already",
          cut.axis, name_of(cut.over), name_of(cut.over));
    }
    over = over | cut.over;
    int64_t end = 0, elements = 0;
    for (const Range& interval : cut.intervals) {
      if (interval.begin < end || interval.end < interval.begin ||
          interval.end > global[static_cast<size_t>(cut.axis)]) {
        throw DataError(
            "the interval [{}, {}) of axis {} overlaps another, or lies outside of the shape [{}]",
            interval.begin, interval.end, cut.axis, fmt::join(global, ", "));
      }
      end = interval.end;
      elements += interval.size();
    }
    if (elements > cut.largest || cut.copies < 1) {
      throw DataError(
          "this position holds {} elements of axis {}, more than the stated maximum of all positions ({})",
          elements, cut.axis, cut.largest);
    }
  }
}

}  // namespace stretto
