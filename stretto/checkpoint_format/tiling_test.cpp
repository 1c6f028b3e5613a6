#include "stretto/checkpoint_format/tiling.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::checkpoint_format {
namespace {

using Index = std::vector<int64_t>;

// "[1, 2] x 0": the first wrong element and the number of regions that contain it; "" if there is none.
std::string first_wrong(const Index& shape, const std::vector<Region>& regions) {
  const auto wrong = first_miscovered(shape, regions);
  return wrong ? fmt::format("[{}] x {}", fmt::join(wrong->element, ", "), wrong->regions) : "";
}

// The expected result of first_wrong, by checking every element.
std::string search(const Index& shape, const std::vector<Region>& regions) {
  const int64_t elements = whole_region(shape).elements();
  Index element(shape.size());
  for (int64_t flat = 0; flat < elements; ++flat) {
    int64_t rest = flat;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) element[axis] = rest % shape[axis];
    const auto holders =
        std::ranges::count_if(regions, [&](const Region& region) { return contains(region, element); });
    if (holders != 1) return fmt::format("[{}] x {}", fmt::join(element, ", "), holders);
  }
  return "";
}

TEST(Tiling, RowsColumnsAndFlatShardsAreAccepted) {
  EXPECT_EQ(first_wrong({4, 6}, {whole_region({4, 6})}), "");
  EXPECT_EQ(first_wrong({4, 6}, {{{0, 0}, {1, 6}, 0, 6}, {{1, 0}, {3, 6}, 0, 18}}), "");
  EXPECT_EQ(first_wrong({4, 6}, {{{0, 2}, {4, 4}, 0, 16}, {{0, 0}, {4, 2}, 0, 8}}), "");
  EXPECT_EQ(first_wrong({4, 6}, {{{0, 0}, {4, 6}, 0, 7}, {{0, 0}, {4, 6}, 7, 7}, {{0, 0}, {4, 6}, 7, 24}}),
            "");
  EXPECT_EQ(first_wrong({4, 6}, {{{0, 0}, {4, 3}, 0, 5}, {{0, 3}, {4, 3}, 0, 12}, {{0, 0}, {4, 3}, 5, 12}}),
            "");
}

TEST(Tiling, GapsAndOverlapsOfTheSameSizeAreFound) {
  EXPECT_EQ(first_wrong({4, 6}, {{{0, 0}, {4, 6}, 0, 8}, {{0, 0}, {4, 6}, 7, 23}}), "[1, 1] x 2");
  EXPECT_EQ(first_wrong({4, 6}, {{{0, 0}, {2, 6}, 0, 12}, {{1, 0}, {2, 6}, 0, 12}}), "[1, 0] x 2");
  EXPECT_EQ(first_wrong({4, 6}, {{{1, 0}, {3, 6}, 0, 18}, {{2, 0}, {1, 6}, 0, 6}}), "[0, 0] x 0");
  EXPECT_EQ(first_wrong({2}, {}), "[0] x 0");
  EXPECT_EQ(first_wrong({2}, {whole_region({2}), whole_region({2}), whole_region({2})}), "[0] x 3");
}

TEST(Tiling, ScalarsAndEmptyTensorsAreAccepted) {
  EXPECT_EQ(first_wrong({}, {whole_region({})}), "");
  EXPECT_EQ(first_wrong({}, {}), "[] x 0");
  EXPECT_EQ(first_wrong({}, {whole_region({}), whole_region({})}), "[] x 2");
  EXPECT_EQ(first_wrong({3, 0}, {}), "");
  EXPECT_EQ(first_wrong({3, 0}, {whole_region({3, 0}), whole_region({3, 0})}), "");
}

TEST(Tiling, CostIsIndependentOfTheSize) {
  constexpr int64_t side = int64_t{1} << 30;
  EXPECT_EQ(first_wrong({side, side}, {{{0, 0}, {side, side}, 0, side * side - 1},
                                       {{0, 0}, {side, side}, side * side - 1, side * side}}),
            "");
  EXPECT_EQ(first_wrong({side, side}, {{{0, 0}, {side, side}, 0, side * side - 1}}),
            fmt::format("[{}, {}] x 0", side - 1, side - 1));
}

TEST(Tiling, ManyAxesRequireASinglePiece) {
  const Index shape(9, 2);
  EXPECT_EQ(first_wrong(shape, {whole_region(shape)}), "");
  EXPECT_THAT(message_of<DataError>([&] {
                first_wrong(shape, {{Index(9, 0), shape, 0, 8}, {Index(9, 0), shape, 8, 512}});
              }),
              ::testing::HasSubstr("9 axes must lie in one piece"));
}

// A tensor is divided at random, repeatedly; then one piece may be changed.
TEST(Tiling, AgreesWithCheckingEveryElement) {
  std::mt19937 random(1);
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  int wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    Index shape;
    for (int64_t axis = 1 + below(3); axis > 0; --axis) shape.push_back(1 + below(5));
    std::vector<Region> regions = {whole_region(shape)};
    for (int64_t cuts = below(5); cuts > 0; --cuts) {
      Region& first = regions[static_cast<size_t>(below(std::ssize(regions)))];
      Region second = first;
      const bool whole_box = first.elements() == whole_region(first.extent).elements();
      const size_t axis = static_cast<size_t>(below(std::ssize(shape)));
      if (whole_box && below(2) == 0) {
        const int64_t at = below(first.extent[axis] + 1);
        first.extent[axis] = at;
        second.extent[axis] -= at;
        second.offset[axis] += at;
        for (Region* part : {&first, &second}) part->flat_end = whole_region(part->extent).elements();
      } else {
        first.flat_end = second.flat_begin = first.flat_begin + below(first.elements() + 1);
      }
      regions.push_back(second);
    }
    if (below(2) == 0) {
      Region& spoiled = regions[static_cast<size_t>(below(std::ssize(regions)))];
      if (below(2) == 0 && spoiled.flat_begin > 0) --spoiled.flat_begin;
      if (below(2) == 0 && spoiled.elements() > 0) --spoiled.flat_end;
      if (below(4) == 0) spoiled = regions.front();
    }
    const std::string expected = search(shape, regions);
    wrong += expected.empty() ? 0 : 1;
    ASSERT_EQ(first_wrong(shape, regions), expected) << "round " << round;
  }
  EXPECT_GT(wrong, 300);
  EXPECT_LT(wrong, 1700);
}

// The index after the last element would overflow.
TEST(Tiling, TheLargestSizeDoesNotOverflow) {
  const std::vector<int64_t> shape = {INT64_MAX};
  const std::vector<Region> halves = {flat_region(shape, 0, 5), flat_region(shape, 5, INT64_MAX)};
  EXPECT_FALSE(first_miscovered(shape, halves).has_value());
  const std::vector<Region> gap = {flat_region(shape, 0, 5), flat_region(shape, 6, INT64_MAX)};
  ASSERT_TRUE(first_miscovered(shape, gap).has_value());
  EXPECT_EQ(first_miscovered(shape, gap)->element, std::vector<int64_t>{5});
}

}  // namespace
}  // namespace stretto::checkpoint_format
