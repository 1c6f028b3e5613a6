#include "stretto/parallel/row_table.h"

#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/gradient_fixture.h"
#include "stretto/parallel/mesh_fixture.h"

namespace stretto::parallel {
namespace {

// A table whose rows shard boundaries cut, and a block.
struct Lookups : torch::nn::Module {
  Lookups() {
    const auto seeded = [](auto layer) {
      at::NoGradGuard no_grad;
      at::Generator random = at::detail::createCPUGenerator(3);
      for (Tensor& parameter : layer->parameters()) parameter.normal_(0, 0.5, random);
      return layer;
    };
    positions = register_module("positions", seeded(std::make_shared<nn::Embedding>(3, 7)));
    words = register_module("words", seeded(std::make_shared<nn::Embedding>(40, 7, /*sparse=*/true)));
    block = register_module("block", seeded(nn::make_sharded<nn::Linear>(7, 7)));
  }
  Tensor forward(const Tensor& ids) {
    const Tensor x = nn::embedding_sum({words->lookup(ids), positions->lookup(ids % 3)});
    return at::tanh(block->forward(x)).to(at::kFloat).square().sum();
  }
  std::shared_ptr<nn::Embedding> words, positions;
  std::shared_ptr<nn::Sharded<nn::Linear>> block;
};

// Three steps of two micro-batches per rank; the rows differ between ranks, micro-batches and steps.
struct RowsTrained {
  NamedTensors weights;
  std::vector<double> norms;
};

RowsTrained train_rows(Group& group, const EngineOptions& options) {
  Lookups net;
  const Mesh mesh = mesh_of(group, options.strategy);
  Engine engine(net, mesh, options, optim::adamw({.lr = 0.05, .weight_decay = 0.1}));
  EXPECT_EQ(engine.facts().sparse_tables, options.lazy_rows ? 1u : 0u);
  RowsTrained result;
  for (int64_t step = 0; step < 3; ++step) {
    for (const int64_t micro : {0, 1}) {
      const Tensor ids =
          (at::arange(5) * 7 + 11 * group.rank() + 5 * micro + 13 * step).remainder(step == 2 ? 17 : 40);
      const bool idle = micro == 1 && group.rank() == 1;
      engine.backward(
          idle && !engine.facts().passes_are_collective ? Tensor() : net.forward(ids) * (idle ? 0 : 1),
          micro == 1 ? Reduce::last : Reduce::later);
    }
    engine.finish();
    result.norms.push_back(engine.gradients().norm());
    engine.gradients().clamp(0.01);
    result.norms.push_back(engine.gradients().norm());
    step == 1 ? engine.skip_step()
              : engine.step({.rates = {.lr = 0.05}, .grad_scale = clip_scale(result.norms.back(), 1)});
    EXPECT_EQ(largest_gradient(net), 0);
    EXPECT_EQ(engine.gradients().held().abs().max().item<float>(), 0);
  }
  for (const auto& [name, tensor] : engine.weights().all()) result.weights[name] = tensor.clone();
  return result;
}

class RowsOfShards : public ::testing::TestWithParam<std::tuple<const char*, const char*, int, bool>> {};

TEST_P(RowsOfShards, AreReducedToTheSumsOfWholeTables) {
  const auto& [strategy, precision, ranks, shared] = GetParam();
  EngineOptions options = {.strategy = strategy,
                           .precision = parse_precision(precision),
                           .bucket_bytes = 100,
                           .shared_parameters = shared};
  comm::run_rank_threads(ranks, [&](Group& group) {
    const RowsTrained by_rows = train_rows(group, options);
    EngineOptions dense = options;
    dense.lazy_rows = false;
    const RowsTrained expected = train_rows(group, dense);
    for (size_t step = 0; step < expected.norms.size(); ++step)
      EXPECT_NEAR(by_rows.norms[step], expected.norms[step], 1e-5 * expected.norms[step]);
    for (const auto& [name, tensor] : expected.weights)
      EXPECT_TRUE(at::allclose(by_rows.weights.at(name), tensor, 1e-5, 1e-6)) << name;
  });
}

TEST_P(RowsOfShards, AreZeroedAfterABackwardThatWasNotReduced) {
  const auto& [strategy, precision, ranks, shared] = GetParam();
  const EngineOptions options = {
      .strategy = strategy, .precision = parse_precision(precision), .shared_parameters = shared};
  comm::run_rank_threads(ranks, [&](Group& group) {
    Lookups net;
    const Mesh mesh = mesh_of(group, options.strategy);
    Engine engine(net, mesh, options, optim::adamw({}));
    const Tensor ids = at::arange(5) * 7 + group.rank();
    engine.backward(net.forward(ids), Reduce::last);
    engine.finish();
    EXPECT_GT(engine.gradients().norm(), 0);
    engine.gradients().clear();
    engine.backward(net.forward(ids + 1), Reduce::never);
    EXPECT_GT(net.words->weight.grad().abs().sum().item<float>(), 0);
    engine.gradients().clear();
    EXPECT_EQ(largest_gradient(net), 0);
    EXPECT_EQ(engine.gradients().held().abs().max().item<float>(), 0);
    // Nothing is added to the gradients of the next step.
    engine.backward(net.forward(ids) * 0, Reduce::last);
    engine.finish();
    EXPECT_EQ(engine.gradients().norm(), 0);
  });
}

TEST(RowTable, CopiesOfAHybridStrategyAreSummedWhole) {
  for (const int shard : {1, 2}) {
    comm::run_rank_threads(4, [&](Group& group) {
      const Mesh mesh = mesh_of(group, "hsdp", shard);
      Lookups net;
      Engine engine(net, mesh, {.strategy = "hsdp"}, optim::adamw({}));
      EXPECT_TRUE(engine.facts().sparse_tables == 0) << "copies differ in their rows";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, RowsOfShards,
                         ::testing::Combine(::testing::Values("ddp", "zero1", "zero2", "fsdp"),
                                            ::testing::Values("fp32", "bf16"), ::testing::Values(1, 2, 3, 5),
                                            ::testing::Bool()));

}  // namespace
}  // namespace stretto::parallel
