#include "stretto/kernels/cpu/pair_tiles.h"

#include <bit>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stretto::kernels {
namespace {

struct Case {
  int64_t m, k, n;
  bool by_columns;
  float factor;
  bool accumulate;
};

std::vector<uint32_t> random_pairs(int64_t count, std::mt19937& generator) {
  std::normal_distribution<float> normal;
  std::vector<uint32_t> pairs(static_cast<size_t>(count));
  for (uint32_t& pair : pairs) {
    const float first = normal(generator), second = normal(generator);
    pair = std::bit_cast<uint32_t>(first) >> 16 | (std::bit_cast<uint32_t>(second) & 0xffff0000);
  }
  return pairs;
}

TEST(PairTiles, MultiplyLikeVectors) {
  if (!has_tiles()) GTEST_SKIP() << "this processor has no AMX";
  std::mt19937 generator(1);
  const PairTiles tiles(true);
  for (const Case& one :
       {Case{16, 32, 64, false, 0.125F, false}, Case{16, 32, 64, false, 1, true},
        Case{64, 8, 64, true, 1, true}, Case{48, 16, 32, true, 1, true}, Case{30, 24, 80, false, 1, false},
        Case{16, 8, 16, false, 2, false}, Case{16, 7, 48, true, 1, true}, Case{5, 32, 48, false, 1, true},
        Case{64, 32, 64, true, 1, true}, Case{16, 24, 80, true, 1, true}, Case{32, 40, 64, true, 1, true}}) {
    const int64_t a_row = one.by_columns ? 1 : one.k + 3, a_column = one.by_columns ? one.m + 5 : 1;
    const auto a = random_pairs((one.m + 5) * (one.k + 3), generator);
    const auto b = random_pairs(one.k * (one.n + 16), generator);
    std::vector<float> by_vectors(static_cast<size_t>(one.m * (one.n + 16)), 0.5F);
    std::vector<float> by_tiles = by_vectors;
    PairProduct product = {by_vectors.data(), one.n + 16, a.data(), a_row, a_column,   b.data(),
                           one.n + 16,        one.m,      one.k,    one.n, one.factor, one.accumulate};
    multiply_pairs(product);
    product.c = by_tiles.data();
    product.tiles = true;
    multiply_pairs(product);
    for (size_t i = 0; i < by_tiles.size(); ++i) {
      ASSERT_NEAR(by_tiles[i], by_vectors[i], 1e-4)
          << fmt::format("{} of {} x {} x {}, by columns {}", i, one.m, one.k, one.n, one.by_columns);
    }
  }
}

}  // namespace
}  // namespace stretto::kernels
