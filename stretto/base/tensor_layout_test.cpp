#include "stretto/base/tensor_layout.h"

#include <functional>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The global row-major element of each local one, found by walking through the global tensor.
std::vector<int64_t> global_elements(const TensorLayout& layout) {
  std::vector<int64_t> found;
  for (int64_t element = 0; element < count_elements(layout.global); ++element) {
    int64_t rest = element;
    std::vector<int64_t> index(layout.global.size());
    for (size_t axis = index.size(); axis-- > 0; rest /= layout.global[axis])
      index[axis] = rest % layout.global[axis];
    const bool here = std::ranges::all_of(layout.cuts, [&](const Cut& cut) {
      const int64_t place = index[static_cast<size_t>(cut.axis)];
      return std::ranges::any_of(cut.intervals,
                                 [&](const Range& r) { return r.begin <= place && place < r.end; });
    });
    if (here) found.push_back(element);
  }
  return found;
}

// Calls `visit(index, position)` for the elements of a box of these sizes, row by row.
void walk(const std::vector<int64_t>& sizes, const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> index(sizes.size(), 0);
  for (int64_t element = 0; element < count_elements(sizes); ++element) {
    visit(index);
    for (size_t axis = sizes.size(); axis-- > 0;) {
      if (++index[axis] < sizes[axis]) break;
      index[axis] = 0;
    }
  }
}

int64_t dot(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t sum = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) sum += index[axis] * strides[axis];
  return sum;
}

// Maps the local elements of the boxes to global ones, according to the boxes.
std::map<int64_t, int64_t> described(const TensorLayout& layout, const std::vector<LocalBox>& boxes) {
  std::vector<int64_t> strides(layout.global.size(), 1);
  for (size_t axis = strides.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * layout.global[axis];
  std::map<int64_t, int64_t> found;
  for (const LocalBox& box : boxes) {
    std::vector<int64_t> global;  // of the region's elements, in order
    walk(box.region.extent, [&](const std::vector<int64_t>& index) {
      global.push_back(dot(box.region.offset, strides) + dot(index, strides));
    });
    int64_t place = box.region.flat_begin;
    walk(box.sizes, [&](const std::vector<int64_t>& index) {
      const bool is_new =
          found.emplace(box.first + dot(index, box.strides), global[static_cast<size_t>(place++)]).second;
      EXPECT_TRUE(is_new) << "boxes overlap";
    });
    EXPECT_EQ(place, box.region.flat_end);
  }
  return found;
}

TEST(TensorLayout, BoxesMapEachLocalElement) {
  std::mt19937 random(7);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int round = 0; round < 2000; ++round) {
    TensorLayout layout;
    for (int64_t axes = below(4); axes >= 0; --axes) layout.global.push_back(1 + below(6));
    for (const Axis over : {Axis::tp, Axis::cp}) {
      const int axis = static_cast<int>(below(std::ssize(layout.global)));
      if (below(3) == 0 || (!layout.cuts.empty() && layout.cuts[0].axis == axis)) continue;
      const int64_t size = layout.global[static_cast<size_t>(axis)];
      Cut cut = {.over = over, .axis = axis, .intervals = {}, .largest = size};
      for (int64_t begin = below(size); begin < size; begin += below(3)) {
        const int64_t end = std::min(size, begin + 1 + below(3));
        cut.intervals.push_back({begin, end});
        begin = end;
      }
      layout.cuts.push_back(cut);
    }
    layout.check();
    const std::vector<int64_t> expected = global_elements(layout);
    const auto count = std::ssize(expected);
    ASSERT_EQ(count_elements(layout.local()), count);
    std::vector<int64_t> in_runs;
    for (const LocalRun& run : layout.runs()) {
      EXPECT_EQ(run.local, std::ssize(in_runs));
      for (int64_t i = 0; i < run.elements; ++i) in_runs.push_back(run.global + i);
    }
    EXPECT_EQ(in_runs, expected);
    const int64_t begin = below(count + 1), end = begin + below(count - begin + 1);
    const auto found = described(layout, layout.boxes(begin, end));
    EXPECT_EQ(std::ssize(found), end - begin);
    for (const auto& [local, global] : found) {
      EXPECT_TRUE(begin <= local && local < end);
      EXPECT_EQ(global, expected[static_cast<size_t>(local)]) << local;
    }
  }
}

TEST(TensorLayout, WholeTensorIsOneFlatRegion) {
  const TensorLayout whole = {{4, 3}};
  EXPECT_THAT(whole.local(), ElementsAre(4, 3));
  EXPECT_EQ(whole.slot(), 12);
  ASSERT_EQ(whole.boxes(2, 7).size(), 1u);
  EXPECT_EQ(whole.boxes(2, 7)[0].region, flat_region({4, 3}, 2, 7));
  EXPECT_EQ(whole.boxes(2, 7)[0].first, 2);
  EXPECT_TRUE(whole.boxes(5, 5).empty());
  ASSERT_EQ(TensorLayout().boxes(0, 1).size(), 1u) << "a scalar";
}

// Query, key and value of GPT-2 in one weight [H, 3H], divided over two positions: the second one has columns
// 1, 3 and 5 of six.
TEST(TensorLayout, AFusedWeightHasThreeIntervals) {
  const TensorLayout layout = {{2, 6}, {{.axis = 1, .intervals = {{1, 2}, {3, 4}, {5, 6}}, .largest = 3}}};
  EXPECT_THAT(layout.local(), ElementsAre(2, 3));
  const auto boxes = layout.boxes(0, 6);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[1].region, (Region{{0, 3}, {2, 1}, 0, 2}));
  EXPECT_EQ(boxes[1].first, 1);
  EXPECT_THAT(boxes[1].strides, ElementsAre(3, 1));
}

TEST(TensorLayout, ASlotHasRoomForTheLargestPart) {
  const TensorLayout layout = {{7, 3}, {{.axis = 0, .intervals = {{4, 7}}, .largest = 4}}};
  EXPECT_EQ(layout.slot(), 12);
  const TensorLayout rows = layout.collapsed(-1), columns = layout.collapsed(0);
  EXPECT_THAT(rows.local(), ElementsAre(3, 1));
  EXPECT_THAT(rows.global, ElementsAre(7, 1));
  EXPECT_THAT(columns.local(), ElementsAre(1, 3));
  EXPECT_TRUE(columns.cuts.empty());
}

TEST(TensorLayout, CutsThatAreNotPossibleAreRefused) {
  const auto check = [](const std::vector<Cut>& cuts) {
    return [cuts] { TensorLayout{{4, 3}, cuts}.check(); };
  };
  EXPECT_THAT(message_of<DataError>(check({{.axis = 2, .intervals = {}}})),
              HasSubstr("2 axes is cut along axis 2"));
  EXPECT_THAT(message_of<DataError>(check({{.axis = 0, .intervals = {{0, 2}, {1, 3}}, .largest = 4}})),
              HasSubstr("interval [1, 3) of axis 0 overlaps another"));
  EXPECT_THAT(message_of<DataError>(check({{.axis = 1, .intervals = {{2, 4}}, .largest = 4}})),
              HasSubstr("outside of the shape [4, 3]"));
  EXPECT_THAT(message_of<DataError>(check({{.axis = 1, .intervals = {{0, 3}}, .largest = 2}})),
              HasSubstr("3 elements of axis 1"));
  EXPECT_THAT(message_of<DataError>(check({{.axis = 1, .intervals = {{0, 1}}, .largest = 2},
                                           {.axis = 0, .intervals = {{0, 1}}, .largest = 2}})),
              HasSubstr("cut over tp"));
}

}  // namespace
}  // namespace stretto
