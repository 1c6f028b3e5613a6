#include "stretto/parallel/engine.h"

#include <array>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/parallel/engine_fixture.h"

namespace stretto::parallel {
namespace {

class Strategies : public ::testing::TestWithParam<std::tuple<std::string, const char*, int>> {};

TEST_P(Strategies, TrainLikeOneRank) {
  const auto& [strategy, precision, ranks] = GetParam();
  const EngineOptions options = {
      .strategy = strategy, .precision = parse_precision(precision), .bucket_bytes = 64};
  Trained alone;
  comm::run_rank_threads(1, [&](Group& group) {
    EngineOptions ddp = options;
    ddp.strategy = "ddp";
    alone = train(group, ddp, 6);
  });
  comm::run_rank_threads(ranks, [&](Group& group) {
    const Trained together = train(group, options, 6);
    const double tolerance = options.precision == Precision::bf16 ? 0.02 : 1e-5;
    for (const auto& [name, expected] : alone.weights) {
      EXPECT_TRUE(at::allclose(together.weights.at(name).to(at::kFloat), expected.to(at::kFloat), tolerance,
                               tolerance))
          << name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Rows, Strategies,
                         ::testing::Combine(::testing::Values("ddp", "zero1", "zero2", "fsdp"),
                                            ::testing::Values("fp32", "bf16", "fp64"),
                                            ::testing::Values(1, 2, 3)));

// Groups of two or three ranks hold a copy each.
TEST(Engine, AHybridStrategyShardsWithinGroups) {
  Trained alone;
  comm::run_rank_threads(1, [&](Group& group) { alone = train(group, {.bucket_bytes = 64}, 6); });
  for (const auto& [ranks, shard] : {std::pair{4, 2}, {6, 3}, {2, 1}, {2, 2}}) {
    std::vector<int64_t> held(static_cast<size_t>(ranks));
    comm::run_rank_threads(ranks, [&, ranks = ranks, shard = shard](Group& group) {
      const Mesh mesh = mesh_of(group, "hsdp", shard);
      EXPECT_EQ(mesh.size(Axis::dp_replicate), ranks / shard);
      const Trained trained = train(mesh, {.strategy = "hsdp", .bucket_bytes = 64}, 6);
      for (const auto& [name, expected] : alone.weights)
        EXPECT_TRUE(at::allclose(trained.weights.at(name), expected, 1e-5, 1e-5)) << name;
      const auto found = trained.held.find("optimizer.exp_avg");
      held[static_cast<size_t>(group.rank())] = found == trained.held.end() ? 0 : found->second;
    });
    EXPECT_EQ(std::reduce(held.begin(), held.end()), 6 * 7 + 7 + 7 * 3 + 3);
  }
}

// A strategy shards over dp_shard and cp of any mesh, and sums over these and dp_replicate, in any order of
// the axes.
TEST(Engine, AnyMeshTrainsLikeOneRank) {
  Trained alone;
  comm::run_rank_threads(1, [&](Group& group) { alone = train(group, {.bucket_bytes = 64}, 4); });
  constexpr std::array turned = {Axis::tp, Axis::cp, Axis::dp_shard, Axis::dp_replicate, Axis::pp};
  const MeshShape shapes[] = {{.dp_replicate = 4},
                              {.dp_shard = 4},
                              {.dp_replicate = 2, .dp_shard = 2},
                              {.dp_replicate = 2, .dp_shard = 2, .order = turned},
                              {.dp_shard = 2, .cp = 2},
                              {.dp_replicate = 2, .cp = 2},
                              {.dp_shard = 2, .tp = 2},
                              {.pp = 2, .dp_replicate = 2, .order = turned}};
  for (const MeshShape& shape : shapes) {
    for (const Sharding& row : shardings()) {
      const int64_t parts = shards_optimizer(row) ? shape.size(Axes::shard) : 1;
      std::vector<int64_t> held(static_cast<size_t>(shape.ranks()));
      comm::run_rank_threads(shape.ranks(), [&](Group& group) {
        const Mesh mesh(group, shape);
        const Trained trained = train(mesh, {.strategy = row.name, .bucket_bytes = 64}, 4);
        for (const auto& [name, expected] : alone.weights) {
          EXPECT_TRUE(at::allclose(trained.weights.at(name), expected, 1e-5, 1e-5))
              << row.name << " on " << shape.text() << ": " << name;
        }
        for (size_t step = 0; step < alone.norms.size(); ++step)
          EXPECT_NEAR(trained.norms[step] / alone.norms[step], 1, 1e-4) << row.name << " on " << shape.text();
        held[static_cast<size_t>(group.rank())] = trained.optimizer_bytes;
      });
      const int64_t whole = alone.optimizer_bytes, padding = 2 * 4 * 16 * 4;
      for (const int64_t bytes : held) {
        EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(whole) / static_cast<double>(parts),
                    padding)
            << row.name << " on " << shape.text();
      }
    }
  }
}

TEST(Engine, AShardedOptimizerHasStateOfItsPartOnly) {
  int64_t whole = 0;
  comm::run_rank_threads(1, [&](Group& group) { whole = train(group, {}, 1).optimizer_bytes; });
  comm::run_rank_threads(2, [&](Group& group) {
    const Trained trained = train(group, {.strategy = "zero1", .precision = Precision::bf16}, 1);
    EXPECT_LE(trained.optimizer_bytes, whole / 2 + 2 * 64);
    const int64_t all = 6 * 7 + 7 + 7 * 3 + 3;
    EXPECT_LT(trained.held.at("optimizer.exp_avg"), all);
    EXPECT_GT(trained.held.at("optimizer.exp_avg"), all / 4);
  });
}

// Shared parameters and gathered copies have the same weights.
TEST(Engine, SharedParametersChangeNoBit) {
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      NamedTensors shared, gathered;
      for (const bool shares : {true, false}) {
        comm::run_rank_threads(3, [&](Group& group) {
          const Trained trained = train(
              group,
              {.strategy = strategy, .precision = precision, .bucket_bytes = 64, .shared_parameters = shares},
              6);
          if (group.rank() == 2) (shares ? shared : gathered) = trained.weights;
        });
      }
      for (const auto& [name, tensor] : shared)
        EXPECT_TRUE(tensor.equal(gathered.at(name))) << strategy << name;
    }
  }
}

TEST(Engine, WithoutSharedMemoryParametersAreGathered) {
  const auto body = [](Group& group) {
    const NamedTensors expected = train(group, {.strategy = "ddp", .bucket_bytes = 64}, 4).weights;
    for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
      for (const auto& [name, tensor] : train(group, {.strategy = strategy, .bucket_bytes = 64}, 4).weights)
        EXPECT_TRUE(at::allclose(tensor, expected.at(name), 1e-5, 1e-6)) << strategy << " " << name;
    }
  };
  comm::run_rank_threads(2, {}, body, "gloo");
}

// A model of one tensor, which the optimizer needs whole: one rank owns all of it, the others nothing.
TEST(Engine, ARankMayOwnEverything) {
  comm::run_rank_threads(2, [](Group& group) {
    for (const char* strategy : {"zero1", "zero2"}) {
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        torch::nn::Module net;
        Tensor& weight = net.register_parameter("weight", at::full({8, 4}, 0.5));
        const Mesh mesh = mesh_of(group, strategy);
        Engine engine(net, mesh, {.strategy = strategy, .precision = precision}, optim::adafactor({}));
        engine.backward(
            (weight.to(at::kFloat) * mlp_inputs(group.rank()).slice(0, 0, 1).slice(1, 0, 4)).sum(),
            Reduce::last);
        engine.finish();
        EXPECT_GT(engine.gradients().norm(), 0);
        engine.step({.rates = {.lr = 0.1}});
        EXPECT_LT(engine.weights().all().at("weight").to(at::kFloat).min().item<float>(), 0.5);
        State state;
        engine.add_state(state);
        engine.resume(state);
      }
    }
  });
}

}  // namespace
}  // namespace stretto::parallel
