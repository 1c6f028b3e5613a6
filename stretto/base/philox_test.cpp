#include "stretto/base/philox.h"

#include <vector>

#include <gtest/gtest.h>

namespace stretto {
namespace {

// The first vectors of the Random123 distribution's known-answer file for philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, ~uint64_t{0}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Permutation, VisitsEveryIndexOnce) {
  for (const uint64_t size : {1u, 2u, 3u, 5u, 64u, 1000u, 4097u}) {
    const Permutation order(size, 7);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(order(i), size);
      EXPECT_FALSE(seen[order(i)]) << "size " << size << " index " << i;
      seen[order(i)] = true;
    }
  }
}

TEST(Permutation, DependsOnTheKey) {
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) same += Permutation(1000, 1)(i) == Permutation(1000, 2)(i);
  EXPECT_LT(same, 20);
}

}  // namespace
}  // namespace stretto
