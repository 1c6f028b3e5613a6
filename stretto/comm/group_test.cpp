#include "stretto/comm/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/comm/rank_threads.h"

namespace stretto {
namespace {

Tensor filled(int rank, at::ScalarType dtype = at::kFloat) { return at::full({4}, rank + 1, at::TensorOptions(dtype)); }

class GroupOfRanks : public ::testing::TestWithParam<int> {};

TEST_P(GroupOfRanks, AllReduceEveryDtype) {
  const int ranks = GetParam();
  run_rank_threads(ranks, [&](Group& group) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kInt}) {
      Tensor tensor = filled(group.rank(), dtype);
      group.all_reduce(tensor).wait();
      EXPECT_EQ(tensor[3].item<double>(), ranks * (ranks + 1) / 2);
    }
    Tensor largest = filled(group.rank());
    group.all_reduce(largest, ReduceOp::max).wait();
    EXPECT_EQ(largest[0].item<float>(), ranks);
  });
}

TEST_P(GroupOfRanks, GatherAndScatterForms) {
  const int ranks = GetParam();
  run_rank_threads(ranks, [&](Group& group) {
    const Tensor all = at::arange(1, ranks + 1, at::kFloat).repeat_interleave(4);
    Tensor gathered = at::empty({4 * ranks});
    group.all_gather(gathered, filled(group.rank())).wait();
    EXPECT_TRUE(at::equal(gathered, all));

    Tensor reduced = at::empty({4});
    group.reduce_scatter(reduced, all.clone()).wait();
    EXPECT_EQ(reduced[0].item<float>(), ranks * (group.rank() + 1));

    Tensor exchanged = at::empty({ranks});
    group.all_to_all(exchanged, at::full({ranks}, group.rank() + 1.0f)).wait();
    EXPECT_TRUE(at::equal(exchanged, at::arange(1, ranks + 1, at::kFloat)));

    Tensor at_root = at::zeros({4 * ranks});
    group.gather(at_root, filled(group.rank()), 0).wait();
    if (group.rank() == 0) {
      EXPECT_TRUE(at::equal(at_root, all));
    }

    Tensor mine = at::empty({4});
    group.scatter(mine, all.clone(), ranks - 1).wait();
    EXPECT_EQ(mine[2].item<float>(), group.rank() + 1);
  });
}

TEST_P(GroupOfRanks, BytesAndBarrier) {
  const int ranks = GetParam();
  run_rank_threads(ranks, [&](Group& group) {
    group.barrier();
    EXPECT_EQ(group.broadcast_bytes(group.rank() == 0 ? "decided" : "?", 0), "decided");
    EXPECT_EQ(group.broadcast_bytes("", 0), "");
    const auto all = group.all_gather_bytes(std::string(static_cast<size_t>(group.rank()), 'x'));
    ASSERT_EQ(std::ssize(all), ranks);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(std::ssize(all[static_cast<size_t>(rank)]), rank);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, GroupOfRanks, ::testing::Values(1, 2, 4));

TEST(Group, SendAndReceive) {
  run_rank_threads(2, [](Group& group) {
    Tensor tensor = filled(group.rank());
    if (group.rank() == 0) {
      group.send(tensor, 1, 7).wait();
    } else {
      group.receive(tensor, 0, 7).wait();
      EXPECT_EQ(tensor[0].item<float>(), 1);
    }
  });
}

TEST(Group, SubgroupsWorkBesideTheWhole) {
  run_rank_threads(4, [](Group& group) {
    const bool even = group.rank() % 2 == 0;
    const auto evens = group.subgroup({0, 2}, "evens");
    const auto odds = group.subgroup({1, 3}, "odds");
    EXPECT_EQ(evens != nullptr, even);
    Group& mine = even ? *evens : *odds;
    Tensor tensor = filled(group.rank());
    mine.all_reduce(tensor).wait();
    EXPECT_EQ(tensor[0].item<float>(), even ? 4 : 6);
    EXPECT_EQ(mine.rank(), group.rank() / 2);
  });
}

TEST(Group, ManyReductionsInFlight) {
  run_rank_threads(2, [](Group& group) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 8; ++i) {
      tensors.push_back(at::full({1000}, i + group.rank()));
      works.push_back(group.all_reduce(tensors.back()));
    }
    for (int i = 0; i < 8; ++i) {
      works[static_cast<size_t>(i)].wait();
      EXPECT_EQ(tensors[static_cast<size_t>(i)][999].item<int64_t>(), 2 * i + 1);
    }
  });
}

TEST(Group, WrongShapesAreNamed) {
  run_rank_threads(2, [](Group& group) {
    try {
      group.all_gather(at::empty({5}), at::empty({2})).wait();
      FAIL();
    } catch (const ShapeError& error) {
      EXPECT_STREQ(error.what(), "all_gather: [5] Float must hold 2 times [2] Float");
    }
  });
}

TEST(Group, MissingPeerEndsAtTheDeadline) {
  run_rank_threads(2, [](Group& group) {
    if (group.rank() == 1) return;  // never joins the reduction
    try {
      group.all_reduce(at::ones({2})).wait();
      FAIL() << "rank 0 should not have succeeded alone";
    } catch (const DistributedError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 0: all_reduce [2] Float #0 of group world"));
    }
  });
}

TEST(Group, UnknownBackendIsRefused) { EXPECT_THROW(Group("mpi", {}, 0, 1), ConfigError); }

}  // namespace
}  // namespace stretto
