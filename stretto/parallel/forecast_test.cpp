#include "stretto/parallel/forecast.h"

#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"
#include "stretto/strategy/step_time.h"

namespace stretto::parallel {
namespace {

struct Stack : torch::nn::Module {
  Stack() {
    register_module("words", std::make_shared<nn::Embedding>(100, 24, /*sparse=*/true));
    for (int i = 0; i < 5; ++i)
      register_module("block" + std::to_string(i), nn::make_sharded<nn::Linear>(24, 31));
  }
};

class Forecasts : public ::testing::TestWithParam<std::tuple<std::string, const char*, int, bool>> {};

TEST_P(Forecasts, EqualTheReportsOfTheEngine) {
  const auto& [strategy, precision_name, ranks, one_host] = GetParam();
  const Precision precision = parse_precision(precision_name);
  const Sharding& row = find_sharding(strategy);
  comm::run_rank_threads(ranks, [&](Group& group) {
    Stack net;
    const auto unbound = optim::adamw({});
    const ModelSizes sizes = sizes_of(collect_tensors(net), precision, *unbound);
    const Mesh mesh = mesh_of(group, strategy);
    Engine engine(net, mesh, {.strategy = strategy, .precision = precision, .shared_parameters = one_host},
                  optim::adamw({}));
    const EngineMemory expected = engine.facts().memory;
    const JobShape job = {.ranks = group.size(), .ranks_per_host = one_host ? group.size() : 1};
    const EngineMemory found = forecast_memory(sizes, row, precision, job).parameters;
    const int64_t padding = 2 * 16 * 8 * group.size();
    EXPECT_NEAR(found.master, expected.master, padding);
    EXPECT_NEAR(found.gradients, expected.gradients, padding);
    EXPECT_NEAR(found.compute, expected.compute, padding);
    EXPECT_NEAR(found.optimizer, expected.optimizer, padding);
    EXPECT_EQ(found.parameters_are_shared, expected.parameters_are_shared);
  });
}

INSTANTIATE_TEST_SUITE_P(Strategies, Forecasts,
                         ::testing::Combine(::testing::Values("ddp", "zero1", "zero2", "fsdp"),
                                            ::testing::Values("fp32", "bf16", "fp64"),
                                            ::testing::Values(1, 2, 3), ::testing::Bool()));

// Layers that are divided among ranks: a rank has its parts, and shards them over the data ranks.
TEST(Forecast, EqualsTheReportsOfEnginesOfParts) {
  struct Parts : torch::nn::Module {
    explicit Parts(const nn::TensorParallel& ranks) {
      for (int i = 0; i < 3; ++i) {
        register_module(fmt::format("norm{}", i),
                        std::make_shared<nn::RmsNormBetweenLayers>(24, 1e-6, ranks));
        register_module(fmt::format("up{}", i), std::make_shared<nn::ColumnLinear>(24, 64, ranks));
        register_module(fmt::format("down{}", i), std::make_shared<nn::RowLinear>(64, 24, ranks));
      }
    }
  };
  for (const auto& [strategy, divides_rows] : {std::pair{"ddp", false}, {"zero1", false}, {"zero1", true}}) {
    comm::run_rank_threads(4, [&, strategy = strategy, divides_rows = divides_rows](Group& group) {
      const Mesh mesh(group, resolve({.strategy = strategy, .tp = 2}, equal_hosts(1, 4)).shape);
      Parts net({&mesh.group(Axis::tp), divides_rows});
      nn::fill_parameters(net, *nn::initial_values(net, 1));
      const auto unbound = optim::adamw({});
      const ModelSizes sizes = sizes_of(collect_tensors(net), Precision::bf16, *unbound);
      const Engine engine(net, mesh, {.strategy = strategy, .precision = Precision::bf16}, optim::adamw({}));
      const EngineMemory expected = engine.facts().memory;
      const MemoryForecast found = forecast_memory(sizes, find_sharding(strategy), Precision::bf16,
                                                   {.ranks = 4, .ranks_per_host = 4, .tp = 2});
      EXPECT_NEAR(found.parameters.total(), expected.total(), 512) << strategy;
      EXPECT_NEAR(found.parameters.optimizer, expected.optimizer, 512) << strategy;
    });
  }
}

TEST(Forecast, EachRowShardsMoreThanThePreviousOne) {
  Stack net;
  const auto unbound = optim::adamw({});
  const ModelSizes sizes = sizes_of(collect_tensors(net), Precision::bf16, *unbound);
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const char* strategy : {"ddp", "zero1", "zero2"}) {
    const int64_t bytes =
        forecast_memory(sizes, find_sharding(strategy), Precision::bf16, {8, 8}).parameters.total();
    EXPECT_LT(bytes, before) << strategy;
    before = bytes;
  }
  const auto over_hosts = [&](const char* strategy) {
    return forecast_memory(sizes, find_sharding(strategy), Precision::bf16, {8, 1});
  };
  EXPECT_LT(over_hosts("fsdp").parameters.compute, over_hosts("zero2").parameters.compute);
  EXPECT_GT(over_hosts("fsdp").step, over_hosts("zero2").step) << "gathered parameters";
  Sharding kept = find_sharding("fsdp");
  kept.reshard_after_forward = false;
  EXPECT_GT(forecast_memory(sizes, kept, Precision::bf16, {8, 1}).step, over_hosts("fsdp").step);
  ModelSizes in_files = sizes;
  in_files.optimizer_in_files = true;
  const EngineMemory offloaded = forecast_memory(in_files, kept, Precision::bf16, {8, 1}).parameters;
  EXPECT_EQ(offloaded.optimizer, 0);
  EXPECT_EQ(offloaded.optimizer_in_files, over_hosts("fsdp").parameters.optimizer);
}

TEST(Forecast, NamesTheBoundOfAStep) {
  Stack net;
  const auto unbound = optim::adamw({});
  const ModelSizes sizes = sizes_of(collect_tensors(net), Precision::fp32, *unbound);
  const auto step = [&](const char* strategy, const JobShape& job, double compute,
                        const HardwareRates& rates) {
    return forecast_step(sizes, find_sharding(strategy), Precision::fp32, job, compute, rates);
  };
  EXPECT_EQ(step("ddp", {2, 2}, 1, {.cores = 2}).bound(), "compute");
  EXPECT_EQ(step("ddp", {2, 2}, 1, {.cores = 2, .memory = 1e3}).bound(), "memory");
  EXPECT_EQ(step("ddp", {2, 1}, 1, {.cores = 2, .network = 1e3}).bound(), "network");
  EXPECT_EQ(step("ddp", {4, 4}, 1, {.cores = 2}).compute, 2) << "two ranks per core";
  EXPECT_LT(step("zero1", {4, 4}, 1, {.cores = 4}).memory, step("ddp", {4, 4}, 1, {.cores = 4}).memory);
  EXPECT_GT(step("fsdp", {4, 2}, 1, {}).network, step("zero2", {4, 2}, 1, {}).network);
  Sharding kept = find_sharding("fsdp");
  kept.reshard_after_forward = false;
  // With reshard_after_forward, each of two hosts gathers its half of the values once more.
  const double values = static_cast<double>(4 * sizes.elements());
  EXPECT_EQ(
      step("fsdp", {4, 2}, 1, {}).sent - forecast_step(sizes, kept, Precision::fp32, {4, 2}, 1, {}).sent,
      values / 2);
}

// zero1 and ddp reduce at the end of a step, the others after each micro-batch.
TEST(Forecast, CountsTheReductionsOfMicroBatches) {
  Stack net;
  const auto unbound = optim::adamw({});
  const ModelSizes sizes = sizes_of(collect_tensors(net), Precision::fp32, *unbound);
  const auto sent = [&](const char* strategy, int64_t micro_batches) {
    const JobShape job = {.ranks = 4, .ranks_per_host = 2, .micro_batches = micro_batches};
    return forecast_step(sizes, find_sharding(strategy), Precision::fp32, job, 1, {}).sent;
  };
  for (const char* strategy : {"ddp", "zero1"}) EXPECT_EQ(sent(strategy, 3), sent(strategy, 1)) << strategy;
  EXPECT_EQ(sent("fsdp", 3), 3 * sent("fsdp", 1));
  const double values = static_cast<double>(4 * sizes.elements()),
               dense = values - static_cast<double>(4 * sizes.tables);
  EXPECT_EQ(sent("zero2", 3), (3 * dense + values) / 2);
}

}  // namespace
}  // namespace stretto::parallel
