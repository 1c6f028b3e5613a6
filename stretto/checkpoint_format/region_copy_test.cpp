#include "stretto/checkpoint_format/region_copy.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace stretto::checkpoint_format {
namespace {

std::vector<int32_t> numbered(int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Returns the elements of a region of the whole tensor, computed from the definition.
std::vector<int32_t> cut(const std::vector<int32_t>& whole, const std::vector<int64_t>& shape,
                         const Region& region) {
  std::vector<int32_t> elements;
  int64_t place = 0;
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t flat = 0; flat < std::ssize(whole); ++flat) {
    int64_t rest = flat;
    bool inside = true;
    for (size_t axis = shape.size(); axis-- > 0;) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
      inside &= index[axis] >= region.offset[axis] && index[axis] < region.offset[axis] + region.extent[axis];
    }
    if (!inside) continue;
    if (place >= region.flat_begin && place < region.flat_end)
      elements.push_back(whole[static_cast<size_t>(flat)]);
    ++place;
  }
  return elements;
}

int64_t copy(const std::vector<int32_t>& from, const Region& from_region, std::vector<int32_t>& to,
             const Region& to_region) {
  return copy_common(from_region, reinterpret_cast<const std::byte*>(from.data()), to_region,
                     reinterpret_cast<std::byte*>(to.data()), sizeof(int32_t));
}

TEST(RegionCopy, CopiesAWholeTensor) {
  const auto whole = numbered(6);
  std::vector<int32_t> target(6, -1);
  EXPECT_EQ(copy(whole, whole_region({2, 3}), target, whole_region({2, 3})), 6);
  EXPECT_EQ(target, whole);
}

TEST(RegionCopy, CopiesScalars) {
  std::vector<int32_t> target = {-1};
  EXPECT_EQ(copy({7}, whole_region({}), target, whole_region({})), 1);
  EXPECT_EQ(target[0], 7);
}

// Pieces of any kind (rows, columns, flat shards) can be assembled from pieces of any other kind.
TEST(RegionCopy, PiecesOfOneDivisionFillThoseOfAnother) {
  const std::vector<int64_t> shape = {5, 4, 6};
  const auto whole = numbered(120);
  const std::vector<std::vector<Region>> cuts = {
      {whole_region(shape)},
      {{{0, 0, 0}, {2, 4, 6}, 0, 48}, {{2, 0, 0}, {3, 4, 6}, 0, 72}},
      {{{0, 0, 0}, {5, 4, 1}, 0, 20}, {{0, 0, 1}, {5, 4, 5}, 0, 100}},
      {{{0, 0, 0}, shape, 0, 41}, {{0, 0, 0}, shape, 41, 90}, {{0, 0, 0}, shape, 90, 120}},
      {{{0, 0, 0}, {5, 2, 6}, 0, 17}, {{0, 0, 0}, {5, 2, 6}, 17, 60}, {{0, 2, 0}, {5, 2, 6}, 0, 60}}};
  for (const auto& from_cut : cuts) {
    for (const auto& to_cut : cuts) {
      for (const Region& to : to_cut) {
        std::vector<int32_t> target(static_cast<size_t>(to.elements()), -1);
        int64_t copied = 0;
        for (const Region& from : from_cut) copied += copy(cut(whole, shape, from), from, target, to);
        EXPECT_EQ(copied, to.elements());
        EXPECT_EQ(target, cut(whole, shape, to));
      }
    }
  }
}

TEST(RegionCopy, OtherElementsAreUnchanged) {
  const std::vector<int64_t> shape = {4, 4};
  const auto whole = numbered(16);
  std::mt19937 random(5);
  const auto draw_region = [&] {
    const auto draw = [&](int64_t below) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
    };
    Region region = {{draw(4), draw(4)}, {}, 0, 0};
    region.extent = {1 + draw(4 - region.offset[0]), 1 + draw(4 - region.offset[1])};
    const int64_t elements = region.extent[0] * region.extent[1];
    region.flat_begin = draw(elements);
    region.flat_end = region.flat_begin + 1 + draw(elements - region.flat_begin);
    return region;
  };
  for (int trial = 0; trial < 2000; ++trial) {
    const Region from = draw_region(), to = draw_region();
    const auto source = cut(whole, shape, from), wanted = cut(whole, shape, to);
    std::vector<int32_t> target(wanted.size(), -1);
    const int64_t copied = copy(source, from, target, to);
    int64_t expected = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool shared = std::find(source.begin(), source.end(), wanted[i]) != source.end();
      expected += shared;
      EXPECT_EQ(target[i], shared ? wanted[i] : -1);
    }
    EXPECT_EQ(copied, expected);
  }
}

}  // namespace
}  // namespace stretto::checkpoint_format
