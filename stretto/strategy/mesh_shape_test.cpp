#include "stretto/strategy/mesh_shape.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <map>
#include <numeric>

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Lists = std::vector<std::vector<int>>;

std::vector<int> numbered(int ranks) {
  std::vector<int> row(static_cast<size_t>(ranks));
  std::iota(row.begin(), row.end(), 0);
  return row;
}

// Whether axes of size 1 are in their usual order: one of the orders that give the same positions.
bool is_first_of_equal_orders(const MeshShape& shape) {
  std::vector<Axis> ones;
  for (const Axis axis : shape.order) {
    if (shape.size(axis) == 1) ones.push_back(axis);
  }
  return std::ranges::is_sorted(ones);
}

// Calls `use` for all shapes of up to 16 ranks, in all orders of their axes; above 8 ranks without orders
// that differ in axes of size 1.
void for_each_shape(const std::function<void(const MeshShape&)>& use) {
  for (int pp = 1; pp <= 16; ++pp)
    for (int replicate = 1; pp * replicate <= 16; ++replicate)
      for (int shard = 1; pp * replicate * shard <= 16; ++shard)
        for (int cp = 1; pp * replicate * shard * cp <= 16; ++cp)
          for (int tp = 1; pp * replicate * shard * cp * tp <= 16; ++tp) {
            MeshShape shape = {.pp = pp, .dp_replicate = replicate, .dp_shard = shard, .cp = cp, .tp = tp};
            do {
              if (shape.ranks() <= 8 || is_first_of_equal_orders(shape)) use(shape);
            } while (std::ranges::next_permutation(shape.order).found);
          }
}

// The expected result of groups_along(), from the definition: a rank's positions on the axes are the digits
// of its number in a mixed base.
Lists by_positions(const MeshShape& shape, Axes axes) {
  std::map<std::vector<int>, std::vector<int>> groups;  // by the positions that the ranks of a group share
  std::vector<std::vector<int>> lists;
  std::array<int, 5> position = {};  // by index in `order`
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    std::vector<int> shared;
    for (size_t i = 0; i < 5; ++i) shared.push_back(axes.has(shape.order[i]) ? 0 : position[i]);
    groups[shared].push_back(rank);
    for (size_t i = 5; i-- > 0;) {
      if (++position[i] < shape.size(shape.order[i])) break;
      position[i] = 0;
    }
  }
  for (const auto& [shared, ranks] : groups) lists.push_back(ranks);
  std::ranges::sort(lists);
  return lists;
}

TEST(MeshShape, HasAProductAndAText) {
  MeshShape shape = {.pp = 2, .dp_replicate = 3, .dp_shard = 4, .cp = 1, .tp = 5};
  EXPECT_EQ(shape.ranks(), 120);
  EXPECT_EQ(shape.size(Axes::data), 12);
  EXPECT_EQ(shape.size(Axis::tp), 5);
  EXPECT_EQ(shape.size({}), 1);
  EXPECT_EQ(shape.text(), "pp 2 x dp_replicate 3 x dp_shard 4 x cp 1 x tp 5");
  std::ranges::reverse(shape.order);
  EXPECT_EQ(shape.text(), "tp 5 x cp 1 x dp_shard 4 x dp_replicate 3 x pp 2");
  EXPECT_EQ((MeshShape{.pp = 1 << 20, .tp = 1 << 20}).ranks(), INT_MAX);
}

TEST(MeshShape, SizesThatDoNotFitTheRanksAreRefused) {
  EXPECT_NO_THROW(require_ranks({.dp_replicate = 3, .tp = 2}, 6));
  EXPECT_THAT(message_of<ConfigError>([] { require_ranks({.dp_replicate = 3, .tp = 2}, 2); }),
              has_all("mesh: pp 1 x dp_replicate 3 x dp_shard 1 x cp 1 x tp 2 = 6 ranks", "the job has 2"));
  EXPECT_THROW(require_ranks({.pp = 0, .tp = 2}, 0), ConfigError);
  EXPECT_THROW(require_ranks({.pp = -1, .tp = -2}, 2), ConfigError);
  MeshShape twice = {.tp = 2};
  twice.order[0] = Axis::tp;
  EXPECT_THAT(message_of<ConfigError>([&] { require_ranks(twice, 2); }), HasSubstr("list each axis once"));
}

// Each set of axes divides the ranks into groups by their positions, for any shape and order of the axes.
TEST(MeshShape, EachSetOfAxesPartitionsTheRanks) {
  int shapes = 0;
  for_each_shape([&](const MeshShape& shape) {
    shapes += shape.ranks() <= 8;
    const std::vector<int> row = numbered(shape.ranks());
    for (uint8_t bits = 0; bits <= Axes::world.bits; ++bits) {
      Axes axes;
      axes.bits = bits;
      const Lists groups = groups_along(shape, axes, row);
      ASSERT_EQ(groups, by_positions(shape, axes)) << shape.text() << ", set " << int{bits};
      std::vector<int> all;
      for (const std::vector<int>& ranks : groups) {
        ASSERT_EQ(std::ssize(ranks), shape.size(axes)) << shape.text();
        all.insert(all.end(), ranks.begin(), ranks.end());
      }
      std::ranges::sort(all);
      ASSERT_EQ(all, row) << shape.text() << ", set " << int{bits};
    }
  });
  EXPECT_EQ(shapes % 120, 0);
}

// The launcher assigns ranks to two hosts in turn.
TEST(MeshShape, TheFastestAxesStayOnAHost) {
  const std::vector<int> row = ranks_by_host({"a", "b", "a", "b"});
  EXPECT_THAT(row, ElementsAre(0, 2, 1, 3));
  const MeshShape shape = {.dp_replicate = 2, .tp = 2};
  EXPECT_EQ(groups_along(shape, Axis::tp, row), (Lists{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_along(shape, Axes::data, row), (Lists{{0, 1}, {2, 3}}));
  EXPECT_EQ(groups_along(shape, Axes::world, row), (Lists{{0, 2, 1, 3}}));
}

}  // namespace
}  // namespace stretto
