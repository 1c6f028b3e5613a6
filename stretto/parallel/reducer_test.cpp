#include "stretto/parallel/reducer.h"

#include <array>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/parallel/tied_net_fixture.h"

namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

Tensor inputs() { return at::arange(40, at::kDouble).view({8, 5}) / 40; }

// The gradient buffer of one rank with the whole batch, by plain autograd.
Tensor expected_gradients() {
  TiedNet net;
  net.to(at::kDouble);
  Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
  net.forward(inputs()).backward();
  return arena.buffers().grad.clone();
}

struct Setting {
  int ranks;
  double bucket_bytes;
  bool checkpointed;
  int micro_batches;
  const char* backend = "shm";
};

class Reduction : public ::testing::TestWithParam<Setting> {};

TEST_P(Reduction, EqualsOneRankWithTheWholeBatch) {
  const Setting setting = GetParam();
  const Tensor expected = expected_gradients();
  const auto rank = [&](Group& group) {
    TiedNet net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = setting.bucket_bytes});
    for (int step = 0; step < 2; ++step) {
      const auto parts = inputs().chunk(setting.ranks * setting.micro_batches);
      for (int micro = 0; micro < setting.micro_batches; ++micro) {
        const Tensor& part = parts[static_cast<size_t>(micro * setting.ranks + group.rank())];
        reducer.backward(net.forward(part, setting.checkpointed), micro + 1 == setting.micro_batches);
      }
      std::array<double, 2> totals = {1, 2};
      reducer.finish(totals);
      EXPECT_THAT(totals, ::testing::ElementsAre(setting.ranks, 2 * setting.ranks));
      EXPECT_LT((arena.buffers().grad - expected).abs().max().item<double>(), 1e-12);
      EXPECT_NEAR(std::sqrt(reducer.sum_of_squares()), expected.norm().item<double>(), 1e-10);
      arena.verify();
      arena.buffers().grad.zero_();
    }
  };
  comm::run_rank_threads(setting.ranks, {}, rank, setting.backend);
}

INSTANTIATE_TEST_SUITE_P(Settings, Reduction,
                         ::testing::Values(Setting{1, 1e6, false, 1}, Setting{2, 1e6, false, 1},
                                           Setting{2, 100, false, 2}, Setting{2, 8, false, 1},
                                           Setting{2, 100, true, 1}, Setting{2, 1e6, true, 2},
                                           Setting{4, 150, true, 2}, Setting{4, 150, false, 1}));
// A thread of the back end reduces a bucket while autograd's threads fill the next: `make test-tsan` runs
// these.
INSTANTIATE_TEST_SUITE_P(Tcp, Reduction,
                         ::testing::Values(Setting{2, 8, false, 2, "tcp"}, Setting{3, 100, true, 1, "tcp"}));

// A lookup, then a layer; `dense` also uses the whole table, as tied weights do.
struct Words : torch::nn::Module {
  Words() {
    first = register_module("first", std::make_shared<nn::Linear>(3, 3));
    table = register_module("table", std::make_shared<nn::Embedding>(40, 3, /*sparse=*/true));
    last = register_module("last", std::make_shared<nn::Linear>(3, 3));
    at::NoGradGuard no_grad;
    at::Generator random = at::detail::createCPUGenerator(7);
    for (Tensor& parameter : parameters()) parameter.normal_(0, 0.5, random);
  }
  Tensor forward(const Tensor& ids) {
    return last->forward(at::tanh(first->forward(table->forward(ids)) + table->forward(ids + 1)))
        .square()
        .sum();
  }
  Tensor dense(const Tensor& ids) { return forward(ids) + table->weight.sum(); }
  std::shared_ptr<nn::Linear> first, last;
  std::shared_ptr<nn::Embedding> table;
};

class SparseTable : public ::testing::TestWithParam<std::pair<int, const char*>> {};

TEST_P(SparseTable, IsReducedByTheRowsThatAnyRankTouched) {
  const Tensor ids = at::tensor({3, 3, 17, 30, 8, 3, 21, 30}, at::kLong);
  Words whole;
  whole.to(at::kDouble);
  whole.forward(ids).backward();
  const auto [ranks, backend] = GetParam();
  const auto rank = [&](Group& group) {
    Words net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = 30});
    ASSERT_EQ(reducer.tables().size(), 1);
    const auto parts = ids.chunk(2 * group.size());
    for (int step = 0; step < 2; ++step) {
      reducer.backward(net.forward(parts[static_cast<size_t>(group.rank())]), false);
      reducer.backward(net.forward(parts[static_cast<size_t>(group.rank() + group.size())]), true);
      std::array<double, 1> ranks = {1};
      reducer.finish(ranks);
      EXPECT_EQ(ranks[0], group.size());
      EXPECT_THAT(reducer.tables()[0]->rows(), ::testing::ElementsAre(3, 4, 8, 9, 17, 18, 21, 22, 30, 31));
      double squares = 0;
      for (const Tensor& parameter : whole.parameters())
        squares += parameter.grad().square().sum().item<double>();
      EXPECT_NEAR(std::sqrt(reducer.sum_of_squares()), std::sqrt(squares), 1e-10);
      for (size_t i = 0; i < whole.parameters().size(); ++i) {
        EXPECT_LT((net.parameters()[i].grad() - whole.parameters()[i].grad()).abs().max().item<double>(),
                  1e-12);
      }
      reducer.zero_gradients();
      EXPECT_EQ(arena.buffers().grad.abs().max().item<double>(), 0);
      EXPECT_TRUE(reducer.tables()[0]->rows().empty());
    }
  };
  comm::run_rank_threads(ranks, {}, rank, backend);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SparseTable,
                         ::testing::Values(std::pair(1, "shm"), std::pair(2, "shm"), std::pair(4, "shm")));
INSTANTIATE_TEST_SUITE_P(Tcp, SparseTable, ::testing::Values(std::pair(2, "tcp")));

TEST(Reducer, ASparseTableThatIsNotOnlyLookedUpIsNamed) {
  comm::run_rank_threads(1, [](Group& group) {
    Words net;
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp32});
    Reducer reducer(arena, group, {.bucket_bytes = 1e6});
    const Tensor loss = net.dense(at::tensor({1, 2}, at::kLong));
    EXPECT_THAT(message_of([&] { reducer.backward(loss, true); }),
                AllOf(HasSubstr("table.weight is used by"), HasSubstr("without sparse tables")));
  });
}

TEST(Reducer, ARankThatTouchesNoRowTakesPart) {
  comm::run_rank_threads(2, [](Group& group) {
    Words net;
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp32});
    Reducer reducer(arena, group, {.bucket_bytes = 1e6});
    reducer.backward(group.rank() == 0 ? Tensor() : net.forward(at::tensor({5}, at::kLong)), true);
    std::array<double, 1> ranks = {1};
    reducer.finish(ranks);
    EXPECT_THAT(reducer.tables()[0]->rows(), ::testing::ElementsAre(5, 6));
    EXPECT_GT(net.table->weight.grad()[6].abs().max().item<double>(), 0);
  });
}

TEST(Reducer, ARankWithoutSamplesTakesPart) {
  const Tensor expected = expected_gradients();
  comm::run_rank_threads(2, [&](Group& group) {
    TiedNet net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = 64});
    reducer.backward(group.rank() == 0 ? net.forward(inputs()) : Tensor(), true);
    std::array<double, 1> ranks = {1};
    reducer.finish(ranks);
    EXPECT_EQ(ranks[0], 2);
    EXPECT_LT((arena.buffers().grad - expected).abs().max().item<double>(), 1e-12);
  });
}

TEST(Reducer, BackwardAroundTheEngineIsRefused) {
  comm::run_rank_threads(1, [&](Group& group) {
    TiedNet net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = 1e6});
    EXPECT_THAT(message_of<std::exception>([&] { net.forward(inputs()).backward(); }),
                HasSubstr("computed outside of stretto's backward"));
  });
}

TEST(Reducer, UndeclaredCheckpointParametersAreRefusedByName) {
  comm::run_rank_threads(1, [&](Group& group) {
    TiedNet net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = 1e6});
    const auto block = [&](const nn::Carry& carry) { return net.once->forward(carry[0]); };
    EXPECT_THAT(message_of<std::exception>(
                    [&] { reducer.backward(nn::activation_checkpoint(block, {inputs()}, {}).sum(), true); }),
                HasSubstr("the gradient of once."));
  });
}

TEST(Reducer, NonFiniteGradientsAreNamed) {
  comm::run_rank_threads(1, [&](Group& group) {
    TiedNet net;
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp32});
    Reducer reducer(arena, group, {.bucket_bytes = 1e6});
    EXPECT_EQ(reducer.first_nonfinite(), -1);
    net.once->bias.mutable_grad()[2] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(arena.parameters()[static_cast<size_t>(reducer.first_nonfinite())].info.name, "once.bias");
    EXPECT_FALSE(std::isfinite(std::sqrt(reducer.sum_of_squares())));
  });
}

TEST(Reducer, CountsUsesAndNamesForeignLeaves) {
  comm::run_rank_threads(1, [&](Group& group) {
    TiedNet net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = 1e6});
    const Tensor foreign = at::ones({5}, at::kDouble).requires_grad_();
    std::vector<Tensor> others;
    const auto uses = reducer.count_uses(net.forward(inputs()) + foreign.sum(), &others);
    EXPECT_EQ(std::count(uses.begin(), uses.end(), 0), 2) << "weight and bias of the unused layer";
    ASSERT_EQ(others.size(), 1u);
    EXPECT_TRUE(others[0].is_same(foreign));
    EXPECT_TRUE(reducer.holds(net.once->weight));
    EXPECT_FALSE(reducer.holds(foreign));
  });
}

TEST(Reducer, StaysUsableAfterABackwardThatThrows) {
  struct Throws : torch::autograd::Function<Throws> {
    static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   const torch::autograd::variable_list&) {
      throw Error("the layer failed");
    }
  };
  const Tensor expected = expected_gradients();
  comm::run_rank_threads(2, [&](Group& group) {
    TiedNet net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64});
    Reducer reducer(arena, group, {.bucket_bytes = 64});
    for (const bool last : {false, true}) {
      // `tied` is used after the layer that fails and before it: its bucket has been neither reduced nor
      // skipped.
      const Tensor y = Throws::apply(at::tanh(net.tied->forward(inputs())));
      EXPECT_THROW(reducer.backward(net.once->forward(y).sum(), last), Error);
      EXPECT_EQ(reducer.phase(), Reducer::Phase::idle);
      EXPECT_EQ(arena.buffers().grad.abs().max().item<double>(), 0);
    }
    const auto parts = inputs().chunk(2);
    reducer.backward(net.forward(parts[static_cast<size_t>(group.rank())]), true);
    reducer.finish();
    EXPECT_LT((arena.buffers().grad - expected).abs().max().item<double>(), 1e-12);
  });
}

}  // namespace
}  // namespace stretto::parallel
