#include "stretto/parallel/fixed_order.h"

#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"

namespace stretto::parallel {
namespace {

// Returns rows whose sum depends on the order of summation in some elements.
Tensor terms_of(int64_t rows, int64_t elements) {
  const at::Generator random = at::detail::createCPUGenerator(5);
  return at::randn({rows, elements}, random) * at::exp(4 * at::randn({rows, elements}, random));
}

Tensor sum_of(const Tensor& rows) { return sum_rows_in_fixed_order(rows.clone()).clone(); }

TEST(FixedOrder, SumsLikeABinaryTree) {
  const Tensor terms = terms_of(5, 64);
  EXPECT_TRUE(at::equal(sum_of(terms), (terms[0] + terms[1]) + (terms[2] + (terms[3] + terms[4]))));
  EXPECT_FALSE(at::equal(sum_of(terms), terms[0] + terms[1] + terms[2] + terms[3] + terms[4]));
  EXPECT_TRUE(at::equal(sum_of(terms.slice(0, 0, 1)), terms[0]));
}

TEST(FixedOrder, PartsOfRanksAreSubtrees) {
  for (const int64_t per_part : {1, 2, 3, 6, 7}) {
    for (const int64_t parts : {2, 4, 8}) {
      const Tensor terms = terms_of(parts * per_part, 64);
      std::vector<Tensor> sums;
      for (const Tensor& part : terms.split(per_part)) sums.push_back(sum_of(part));
      ASSERT_TRUE(at::equal(sum_of(at::stack(sums)), sum_of(terms))) << parts << " x " << per_part;
    }
  }
}

TEST(FixedOrder, SubtreesAreTheLargestInAPart) {
  EXPECT_EQ(subtrees(12, {0, 12}), (std::vector<Range>{{0, 12}}));
  EXPECT_EQ(subtrees(12, {3, 6}), (std::vector<Range>{{3, 6}}));
  EXPECT_EQ(subtrees(12, {4, 8}), (std::vector<Range>{{4, 6}, {6, 7}, {7, 8}}));
}

// Any number of ranks, also if they have different numbers of terms; two ranges of elements, one of which no
// rank can sum in place; and a second step, which finds the memory of the first.
TEST(FixedOrder, RanksSumLikeOneRank) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    for (const int64_t count : {5, 6, 7, 12, 19}) {
      const Tensor terms = terms_of(count, 64), expected = sum_of(terms);
      comm::run_rank_threads(ranks, [&](Group& group) {
        const Tensor buffer = at::zeros({64});
        FixedOrderSum sum(buffer, count, ranks, group.rank());
        const Range own = part_range(count, ranks, group.rank());
        const int64_t passes = (count + ranks - 1) / ranks;
        for (int step = 0; step < 2; ++step) {
          for (int64_t pass = 0; pass < passes; ++pass) {
            const int64_t term = own.end - passes + pass;
            if (term >= own.begin) buffer.add_(terms[term]);
            if (pass + 1 < passes) sum.take();
          }
          Work first = sum_in_fixed_order(group, count, sum.roots({0, 44}));
          Work second = sum_in_fixed_order(group, count, sum.roots({44, 64}));
          sum.restart();
          first.wait();
          second.wait();
          EXPECT_TRUE(at::equal(buffer, expected)) << count << " terms on " << ranks << " ranks";
          buffer.zero_();
        }
      });
    }
  }
}

TEST(FixedOrder, StoresFewSums) {
  const auto stored = [](int64_t terms, int ranks, int rank) {
    return FixedOrderSum({}, terms, ranks, rank).stored();
  };
  EXPECT_EQ(stored(1, 1, 0), 0);
  EXPECT_EQ(stored(2, 2, 1), 0);
  EXPECT_EQ(stored(8, 1, 0), 3);
  EXPECT_EQ(stored(8, 2, 0), 2);
  EXPECT_EQ(stored(12, 3, 1), 2) << "of the terms 4 to 7, the sum of the first two and the third";
}

}  // namespace
}  // namespace stretto::parallel
