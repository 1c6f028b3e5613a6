#include "stretto/parallel/data_parallel.h"

#include <array>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/layers.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

// A block used twice (tied weights), one used once, one that is never used, one frozen.
struct Net : torch::nn::Module {
  Net() {
    const auto linear = [&](const char* name) {
      auto layer = register_module(name, std::make_shared<nn::Linear>(5, 5));
      at::Generator random = at::detail::createCPUGenerator(std::hash<std::string>()(name));
      at::NoGradGuard no_grad;
      layer->weight.normal_(0, 0.5, random);
      layer->bias.normal_(0, 0.5, random);
      return layer;
    };
    tied = linear("tied");
    once = linear("once");
    unused = linear("unused");
    frozen = linear("frozen");
    frozen->weight.requires_grad_(false);
    frozen->bias.requires_grad_(false);
  }
  Tensor forward(const Tensor& x, bool checkpointed = false) {
    const auto block = [this](const Tensor& y) { return at::tanh(tied->forward(y)); };
    const std::vector<Tensor> parameters = {tied->weight, tied->bias};
    Tensor y = checkpointed ? nn::activation_checkpoint(block, x, parameters) : block(x);
    y = frozen->forward(once->forward(y));
    return (checkpointed ? nn::activation_checkpoint(block, y, parameters) : block(y)).square().sum();
  }
  std::shared_ptr<nn::Linear> tied, once, unused, frozen;
};

Tensor inputs() { return at::arange(40, at::kDouble).view({8, 5}) / 40; }

// The gradient buffer of one rank that saw everything, by plain autograd.
Tensor expected_gradients() {
  Net net;
  net.to(at::kDouble);
  Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
  net.forward(inputs()).backward();
  return arena.buffers().grad.clone();
}

struct Setting {
  int ranks;
  double bucket_bytes;
  bool checkpointed;
  int micro_batches;
};

class Reduction : public ::testing::TestWithParam<Setting> {};

TEST_P(Reduction, EqualsOneRankThatSawEverything) {
  const Setting setting = GetParam();
  const Tensor expected = expected_gradients();
  run_rank_threads(setting.ranks, [&](Group& group) {
    Net net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
    DataParallel engine(arena, group, setting.bucket_bytes);
    for (int step = 0; step < 2; ++step) {
      const auto parts = inputs().chunk(setting.ranks * setting.micro_batches);
      for (int micro = 0; micro < setting.micro_batches; ++micro) {
        const Tensor part = parts[static_cast<size_t>(micro * setting.ranks + group.rank())];
        engine.backward(net.forward(part, setting.checkpointed), micro + 1 == setting.micro_batches);
      }
      std::array<double, 2> totals = {1, 2};
      engine.finish(totals);
      EXPECT_THAT(totals, ::testing::ElementsAre(setting.ranks, 2 * setting.ranks));
      EXPECT_LT((arena.buffers().grad - expected).abs().max().item<double>(), 1e-12);
      EXPECT_NEAR(engine.gradient_norm(), expected.norm().item<double>(), 1e-10);
      arena.verify();
      arena.buffers().grad.zero_();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, Reduction,
                         ::testing::Values(Setting{1, 1e6, false, 1}, Setting{2, 1e6, false, 1},
                                           Setting{2, 100, false, 2}, Setting{2, 8, false, 1},
                                           Setting{2, 100, true, 1}, Setting{2, 1e6, true, 2},
                                           Setting{4, 150, true, 2}, Setting{4, 150, false, 1}));

// Words are looked up, then a layer; `dense` uses the whole table as well, as tied weights do.
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

class SparseTable : public ::testing::TestWithParam<int> {};

TEST_P(SparseTable, IsReducedByTheRowsThatAnyRankTouched) {
  const Tensor ids = at::tensor({3, 3, 17, 30, 8, 3, 21, 30}, at::kLong);
  Words whole;
  whole.to(at::kDouble);
  whole.forward(ids).backward();
  run_rank_threads(GetParam(), [&](Group& group) {
    Words net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
    DataParallel engine(arena, group, 30);
    ASSERT_EQ(engine.tables().size(), 1);
    const auto parts = ids.chunk(2 * group.size());
    for (int step = 0; step < 2; ++step) {
      engine.backward(net.forward(parts[static_cast<size_t>(group.rank())]), false);
      engine.backward(net.forward(parts[static_cast<size_t>(group.rank() + group.size())]), true);
      std::array<double, 1> ranks = {1};
      engine.finish(ranks);
      EXPECT_EQ(ranks[0], group.size());
      EXPECT_THAT(engine.tables()[0]->rows(), ::testing::ElementsAre(3, 4, 8, 9, 17, 18, 21, 22, 30, 31));
      double squares = 0;
      for (const Tensor& parameter : whole.parameters())
        squares += parameter.grad().square().sum().item<double>();
      EXPECT_NEAR(engine.gradient_norm(), std::sqrt(squares), 1e-10);
      for (size_t i = 0; i < whole.parameters().size(); ++i) {
        EXPECT_LT((net.parameters()[i].grad() - whole.parameters()[i].grad()).abs().max().item<double>(),
                  1e-12);
      }
      engine.zero_gradients();
      EXPECT_EQ(arena.buffers().grad.abs().max().item<double>(), 0);
      EXPECT_TRUE(engine.touched_rows()[0].empty());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SparseTable, ::testing::Values(1, 2, 4));

TEST(DataParallel, ASparseTableThatIsUsedOtherwiseIsNamed) {
  run_rank_threads(1, [](Group& group) {
    Words net;
    Arena arena(collect_tensors(net).trained, Precision::fp32, plain_memory());
    DataParallel engine(arena, group, 1e6);
    const Tensor loss = net.dense(at::tensor({1, 2}, at::kLong));
    EXPECT_THAT([&] { engine.backward(loss, true); },
                ::testing::ThrowsMessage<Error>(
                    AllOf(HasSubstr("table.weight is used by"), HasSubstr("without sparse tables"))));
  });
}

TEST(DataParallel, ARankWithoutAnyRowTakesPart) {
  run_rank_threads(2, [](Group& group) {
    Words net;
    Arena arena(collect_tensors(net).trained, Precision::fp32, plain_memory());
    DataParallel engine(arena, group, 1e6);
    engine.backward(group.rank() == 0 ? Tensor() : net.forward(at::tensor({5}, at::kLong)), true);
    std::array<double, 1> ranks = {1};
    engine.finish(ranks);
    EXPECT_THAT(engine.tables()[0]->rows(), ::testing::ElementsAre(5, 6));
    EXPECT_GT(net.table->weight.grad()[6].abs().max().item<double>(), 0);
  });
}

TEST(DataParallel, ARankWithoutSamplesTakesPart) {
  const Tensor expected = expected_gradients();
  run_rank_threads(2, [&](Group& group) {
    Net net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
    DataParallel engine(arena, group, 64);
    engine.backward(group.rank() == 0 ? net.forward(inputs()) : Tensor(), true);
    std::array<double, 1> ranks = {1};
    engine.finish(ranks);
    EXPECT_EQ(ranks[0], 2);
    EXPECT_LT((arena.buffers().grad - expected).abs().max().item<double>(), 1e-12);
  });
}

TEST(DataParallel, StartGivesEveryRankTheFirstOnesWeights) {
  run_rank_threads(2, [&](Group& group) {
    Net net;
    {
      at::NoGradGuard no_grad;
      for (Tensor& parameter : net.parameters()) parameter.fill_(group.rank() + 1);
    }
    const ModuleTensors tensors = collect_tensors(net);
    Arena arena(tensors.trained, Precision::fp32, plain_memory());
    DataParallel engine(arena, group, 1e6);
    engine.synchronise_start(tensors.constant);
    for (const Tensor& parameter : net.parameters()) EXPECT_EQ(parameter.min().item<float>(), 1);
  });
}

TEST(DataParallel, BackwardAroundTheEngineIsRefused) {
  run_rank_threads(1, [&](Group& group) {
    Net net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
    DataParallel engine(arena, group, 1e6);
    try {
      net.forward(inputs()).backward();
      FAIL() << "loss.backward() should have been refused";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("computed outside of stretto's backward"));
    }
  });
}

TEST(DataParallel, UndeclaredCheckpointParametersAreRefusedByName) {
  run_rank_threads(1, [&](Group& group) {
    Net net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
    DataParallel engine(arena, group, 1e6);
    const auto block = [&](const Tensor& x) { return net.once->forward(x); };
    try {
      engine.backward(nn::activation_checkpoint(block, inputs(), {}).sum(), true);
      FAIL() << "a gradient added after its reduction should have been refused";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("the gradient of once."));
    }
  });
}

TEST(DataParallel, NonFiniteGradientsAreNamed) {
  run_rank_threads(1, [&](Group& group) {
    Net net;
    Arena arena(collect_tensors(net).trained, Precision::fp32, plain_memory());
    DataParallel engine(arena, group, 1e6);
    EXPECT_EQ(engine.first_nonfinite(), "");
    net.once->bias.mutable_grad()[2] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(engine.first_nonfinite(), "once.bias");
    EXPECT_FALSE(std::isfinite(engine.gradient_norm()));
  });
}

TEST(Arena, UnitsDecayAndFrozenParameters) {
  Net net;
  const ModuleTensors tensors = collect_tensors(net);
  EXPECT_EQ(tensors.trained.size(), 6u);
  EXPECT_EQ(tensors.constant.size(), 2u);
  Arena arena(tensors.trained, Precision::bf16, plain_memory());
  EXPECT_EQ(net.once->weight.scalar_type(), at::kBFloat16);
  EXPECT_EQ(net.once->weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(arena.trained_elements(), 3 * 30);
  const auto pieces = arena.optimizer_pieces();
  ASSERT_EQ(pieces.size(), 6u);
  EXPECT_EQ(pieces[0].name, "tied.weight");
  EXPECT_EQ(pieces[0].end - pieces[0].begin, 25);
  EXPECT_TRUE(pieces[0].weight_decay);
  EXPECT_FALSE(pieces[1].weight_decay);
}

TEST(Arena, ReplacedTensorsAreRefusedByName) {
  Net net;
  Arena arena(collect_tensors(net).trained, Precision::fp32, plain_memory());
  arena.verify();
  net.once->weight.mutable_grad() = Tensor();
  try {
    arena.verify();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the gradient of once.weight was replaced or dropped"));
  }
  Net other;
  Arena second(collect_tensors(other).trained, Precision::fp32, plain_memory());
  other.to(at::kDouble);
  try {
    second.verify();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("parameter tied.weight was replaced"));
  }
}

TEST(Arena, DroppedGradientsAreBoundAgainAsZeros) {
  Net net;
  Arena arena(collect_tensors(net).trained, Precision::fp32, plain_memory());
  arena.buffers().grad.fill_(1);
  EXPECT_EQ(arena.rebind_dropped_gradients(), 0u);
  net.once->weight.mutable_grad() = Tensor();
  EXPECT_EQ(arena.rebind_dropped_gradients(), 1u);
  arena.verify();
  EXPECT_EQ(net.once->weight.grad().abs().max().item<float>(), 0);
  EXPECT_EQ(net.once->bias.grad().min().item<float>(), 1);
  net.zero_grad();
  EXPECT_EQ(arena.rebind_dropped_gradients(), 6u);
  EXPECT_EQ(net.once->bias.grad().max().item<float>(), 0);
  net.once->weight.mutable_grad() = at::zeros({5, 5});
  EXPECT_THROW(arena.rebind_dropped_gradients(), Error);
}

TEST(DataParallel, CountsUsesAndNamesForeignLeaves) {
  run_rank_threads(1, [&](Group& group) {
    Net net;
    net.to(at::kDouble);
    Arena arena(collect_tensors(net).trained, Precision::fp64, plain_memory());
    DataParallel engine(arena, group, 1e6);
    const Tensor foreign = at::ones({5}, at::kDouble).requires_grad_();
    std::vector<Tensor> others;
    const auto uses = engine.count_uses(net.forward(inputs()) + foreign.sum(), &others);
    EXPECT_EQ(std::count(uses.begin(), uses.end(), 0), 2) << "weight and bias of the unused layer";
    ASSERT_EQ(others.size(), 1u);
    EXPECT_TRUE(others[0].is_same(foreign));
    EXPECT_TRUE(engine.holds(net.once->weight));
    EXPECT_FALSE(engine.holds(foreign));
  });
}

TEST(CollectTensors, RefusesWhatCannotBeTrained) {
  struct Complex : torch::nn::Module {
    Complex() { register_parameter("z", at::zeros({2}, at::kComplexFloat)); }
  };
  EXPECT_THROW(collect_tensors(Complex()), ConfigError);
  struct Frozen : torch::nn::Module {
    Frozen() { register_parameter("w", at::zeros({2}), /*requires_grad=*/false); }
  };
  EXPECT_THROW(Arena(collect_tensors(Frozen()).trained, Precision::fp32, plain_memory()), ConfigError);
}

}  // namespace
}  // namespace stretto
