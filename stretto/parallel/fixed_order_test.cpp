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

TEST(FixedOrder, TermsMayBeAddedOneAfterTheOther) {
  for (int64_t count = 1; count <= 19; ++count) {
    const Tensor buffer = at::zeros({64});
    FixedOrderSum sum(buffer, count);
    for (int step = 0; step < 2; ++step) {
      const Tensor terms = terms_of(count, 64) + step;
      for (int64_t term = 0; term < count; ++term) {
        buffer.add_(terms[term]);
        if (term + 1 < count) sum.take();
      }
      sum.add_taken({0, 40});
      sum.add_taken({40, 64});
      sum.restart();
      ASSERT_TRUE(at::equal(buffer, sum_of(terms))) << count << " terms, step " << step;
      buffer.zero_();
    }
  }
}

TEST(FixedOrder, RanksSumLikeOneRank) {
  for (const int ranks : {1, 2, 4}) {
    for (const int64_t elements : {1, 7, 64}) {
      const Tensor terms = terms_of(ranks, elements), expected = sum_of(terms);
      comm::run_rank_threads(ranks, [&](Group& group) {
        const Tensor local = terms[group.rank()].clone(), again = local.clone();
        Work first = sum_in_fixed_order(group, local), second = sum_in_fixed_order(group, again);
        first.wait();
        second.wait();
        EXPECT_TRUE(at::equal(local, expected)) << ranks << " ranks, " << elements << " elements";
        EXPECT_TRUE(at::equal(again, expected));
      });
    }
  }
}

}  // namespace
}  // namespace stretto::parallel
