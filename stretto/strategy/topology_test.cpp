#include "stretto/strategy/topology.h"

#include <array>

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/strategy/sharding.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

BatchPlan resolve_batch(const BatchRequest& request, int ranks) {
  return resolve({.batch = request}, equal_hosts(1, ranks)).batch;
}

// Global size, batch size and accumulation steps of the plan for `request` on `ranks` ranks.
std::array<int64_t, 3> plan(const BatchRequest& request, int ranks) {
  const BatchPlan plan = resolve_batch(request, ranks);
  EXPECT_EQ(plan.data_ranks, ranks);
  return {plan.global_batch_size, plan.batch_size, plan.grad_accumulation_steps};
}

using Sizes = std::array<int64_t, 3>;

TEST(BatchPlan, DefaultsFillWhatIsNotGiven) {
  EXPECT_EQ(plan({}, 2), (Sizes{64, 32, 1}));
  EXPECT_EQ(plan({.batch_size = 8}, 4), (Sizes{32, 8, 1}));
  EXPECT_EQ(plan({.grad_accumulation_steps = 3}, 2), (Sizes{192, 32, 3}));
  EXPECT_EQ(plan({.global_batch_size = 128}, 2), (Sizes{128, 64, 1}));
}

TEST(BatchPlan, AnyTwoGiveTheThird) {
  EXPECT_EQ(plan({.batch_size = 16, .grad_accumulation_steps = 2}, 2), (Sizes{64, 16, 2}));
  EXPECT_EQ(plan({.batch_size = 16, .global_batch_size = 64}, 2), (Sizes{64, 16, 2}));
  EXPECT_EQ(plan({.global_batch_size = 64, .grad_accumulation_steps = 2}, 2), (Sizes{64, 16, 2}));
  EXPECT_EQ(plan({.batch_size = 16, .global_batch_size = 64, .grad_accumulation_steps = 2}, 2),
            (Sizes{64, 16, 2}));
}

TEST(BatchPlan, AGlobalSizeNeedNotDivide) {
  EXPECT_EQ(plan({.global_batch_size = 100}, 3), (Sizes{100, 34, 1}));
  EXPECT_EQ(plan({.batch_size = 34, .global_batch_size = 100}, 3), (Sizes{100, 34, 1}));
  EXPECT_EQ(plan({.batch_size = 17, .global_batch_size = 100}, 3), (Sizes{100, 17, 2}));
  EXPECT_EQ(plan({.global_batch_size = 7, .grad_accumulation_steps = 2}, 2), (Sizes{7, 2, 2}));
  EXPECT_EQ(plan({.global_batch_size = 1}, 4), (Sizes{1, 1, 1}));
}

TEST(BatchPlan, TokenBudgetsReplaceSampleCounts) {
  EXPECT_EQ(plan({.grad_accumulation_steps = 4, .max_tokens = 4096}, 2), (Sizes{0, 0, 4}));
  EXPECT_THAT(message_of<ConfigError>([] { resolve_batch({.batch_size = 8, .max_tokens = 4096}, 2); }),
              has_all("max_tokens: ", "either by tokens or by samples", "remove this or batch_size"));
  EXPECT_THAT(message_of<ConfigError>([] { resolve_batch({.global_batch_size = 8, .max_tokens = 4096}, 2); }),
              HasSubstr("global_batch_size"));
}

TEST(BatchPlan, DeterministicRunsHaveTheSameMicroBatchesOnAnyNumberOfRanks) {
  TopologyRequest request = {.batch = {.deterministic = true}};
  const auto refusal = [&](int ranks) -> std::string {
    try {
      resolve(request, equal_hosts(1, ranks));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(2), HasSubstr("set global_batch_size and batch_size"));
  request.batch.batch_size = 4;
  EXPECT_THAT(refusal(2), HasSubstr("set global_batch_size and batch_size"));
  request.batch.global_batch_size = 24;
  EXPECT_EQ(plan(request.batch, 1), (Sizes{24, 4, 6}));
  EXPECT_EQ(plan(request.batch, 2), (Sizes{24, 4, 3}));
  EXPECT_EQ(plan(request.batch, 4), (Sizes{24, 4, 2}));
  EXPECT_EQ(plan(request.batch, 5), (Sizes{24, 4, 2}));
  EXPECT_EQ(plan(request.batch, 6), (Sizes{24, 4, 1}));
  EXPECT_THAT(refusal(7), has_all("6 micro-batches", "fewer than the 7 ranks",
                                  "global_batch_size to at least 28", "batch_size to at most 3"));
  for (const Sharding& row : shardings()) {
    request.strategy = row.name;
    for (const int ranks : {1, 2, 3, 4}) EXPECT_EQ(refusal(ranks), "") << row.name << " " << ranks;
  }
  request.strategy = "ddp";
  request.batch.grad_accumulation_steps = 2;
  EXPECT_EQ(refusal(5), "");
  EXPECT_THAT(refusal(6), HasSubstr("the right-hand side is 48"));
  request.batch.grad_accumulation_steps.reset();
  request.batch.global_batch_size = 22;
  EXPECT_THAT(refusal(2), HasSubstr("global_batch_size (22) must be a multiple of batch_size (4)"));
  request.batch.batch_size.reset();
  request.batch.max_tokens = 512;
  EXPECT_THAT(refusal(2), HasSubstr("max_tokens"));
}

TEST(BatchPlan, ContradictionsPrintTheEquation) {
  EXPECT_THAT(
      message_of<ConfigError>([] { resolve_batch({.batch_size = 32, .global_batch_size = 100}, 2); }),
      has_all("global_batch_size (100) = batch_size (32) x world_size (2) x grad_accumulation_steps (1)",
              "right-hand side is 64", "change global_batch_size to 64", "batch_size to 50"));
  EXPECT_THAT(message_of<ConfigError>([] {
                resolve_batch({.batch_size = 32, .global_batch_size = 64, .grad_accumulation_steps = 2}, 2);
              }),
              has_all("grad_accumulation_steps (2)", "right-hand side is 128"));
  EXPECT_THAT(message_of<ConfigError>(
                  [] { resolve_batch({.global_batch_size = 2, .grad_accumulation_steps = 4}, 1); }),
              has_all("2 samples", "steps without samples", "grad_accumulation_steps to at most 2"));
}

TEST(BatchPlan, IsDescribed) {
  const auto describe = [](const BatchRequest& request, int ranks) {
    return describe_batch(resolve_batch(request, ranks));
  };
  EXPECT_EQ(describe({.batch_size = 8}, 1), "8 samples per step = 8 per rank x 1 rank");
  EXPECT_EQ(describe({.batch_size = 8, .grad_accumulation_steps = 2}, 2),
            "32 samples per step = 8 per rank x 2 ranks x 2 accumulation steps");
  EXPECT_EQ(describe({.global_batch_size = 7}, 2), "7 samples per step: at most 4 per rank on 2 ranks");
  EXPECT_EQ(describe_batch(resolve_batch({.batch_size = 8}, 1), /*ranks_per_layer=*/2),
            "8 samples per step = 8 per group x 1 group of 2 ranks");
  EXPECT_EQ(describe({.max_tokens = 4096}, 2), "at most 4096 tokens per rank and micro-batch x 2 ranks");
}

TEST(Topology, AStrategyPutsItsRanksOnTheAxesThatItUses) {
  const auto shape = [](const TopologyRequest& request, const std::vector<std::string>& hosts) {
    return resolve(request, hosts).shape;
  };
  const auto hosts = equal_hosts(2, 4);
  EXPECT_EQ(shape({.strategy = "ddp"}, hosts), (MeshShape{.dp_replicate = 8}));
  for (const char* strategy : {"zero1", "zero2", "fsdp"})
    EXPECT_EQ(shape({.strategy = strategy}, hosts), (MeshShape{.dp_shard = 8}));
  EXPECT_EQ(shape({.strategy = "hsdp"}, hosts), (MeshShape{.dp_replicate = 2, .dp_shard = 4}));
  EXPECT_EQ(shape({.strategy = "hsdp", .dp_shard = 2}, hosts), (MeshShape{.dp_replicate = 4, .dp_shard = 2}));
  EXPECT_EQ(shape({.strategy = "hsdp", .dp_shard = 1}, {"a", "a", "b"}), (MeshShape{.dp_replicate = 3}));
}

TEST(Topology, TheBatchIsDividedAmongTheRanksWithDifferentSamples) {
  const MeshShape shape = {.pp = 2, .dp_replicate = 2, .dp_shard = 3, .cp = 2, .tp = 2};
  EXPECT_EQ(resolve({.batch = {.batch_size = 4}}, shape).batch.global_batch_size, 4 * 6);
}

TEST(Topology, ImpossibleCopiesAreRefused) {
  const auto dealt = [](const std::string& option) { return "--" + option; };
  const OptionLabels labels = {.label = [&](const std::string& option) { return dealt(option) + ": "; },
                               .mention = dealt};
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { resolve({.strategy = "hsdp", .dp_shard = 4, .labels = labels}, equal_hosts(2, 3)); }),
              has_all("--dp_shard: 6 ranks ", "copies of 4 ranks"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                resolve({.strategy = "hsdp", .labels = labels}, {"a", "b", "b"});
              }),
              has_all("--strategy: strategy hsdp ", "one copy per host", "a has 1 rank and b has 2",
                      "set --dp_shard"));
}

TEST(Topology, RanksOfOneHostDivideLayers) {
  const auto shape = [](const TopologyRequest& request, int ranks) {
    return resolve(request, equal_hosts(1, ranks)).shape;
  };
  EXPECT_EQ(shape({.tp = 2}, 6), (MeshShape{.dp_replicate = 3, .tp = 2}));
  EXPECT_EQ(shape({.tp = 2, .dp = 3}, 6), (MeshShape{.dp_replicate = 3, .tp = 2}));
  for (const Sharding& row : shardings()) {
    const bool shards = row.optimizer == Held::sharded;
    EXPECT_EQ(shape({.strategy = row.name, .tp = 2}, 4),
              shards ? (MeshShape{.dp_shard = 2, .tp = 2}) : (MeshShape{.dp_replicate = 2, .tp = 2}))
        << row.name;
  }
  EXPECT_EQ(shape({.strategy = "hsdp", .dp_shard = 2, .tp = 2}, 8),
            (MeshShape{.dp_replicate = 2, .dp_shard = 2, .tp = 2}));
  EXPECT_EQ(resolve({.strategy = "hsdp", .tp = 2}, equal_hosts(2, 4)).shape,
            (MeshShape{.dp_replicate = 2, .dp_shard = 2, .tp = 2}));
  EXPECT_EQ(resolve({.tp = 2, .batch = {.global_batch_size = 12}}, equal_hosts(1, 6)).batch.batch_size, 4);
}

TEST(Topology, LayersOverHostsAreSlow) {
  const auto warning = [](const TopologyRequest& request, const std::vector<std::string>& hosts) {
    return slow_topology(resolve(request, hosts), hosts, request.labels);
  };
  EXPECT_EQ(warning({.tp = 2}, equal_hosts(2, 2)), "");
  EXPECT_EQ(warning({.tp = 2}, {"a", "b", "a", "b"}), "") << "neighbours by host";
  EXPECT_EQ(warning({}, equal_hosts(2, 1)), "");
  for (const auto& hosts : {equal_hosts(2, 1), std::vector<std::string>{"a", "a", "a", "b"}}) {
    EXPECT_THAT(warning({.tp = 2}, hosts),
                ::testing::AllOf(::testing::StartsWith("mesh.tp: "),
                                 has_all("2 ranks", "parts of one layer", "different hosts")));
  }
}

TEST(Topology, MeshesThatDoNotFitTheRanksAreRefused) {
  const auto refusal = [](const TopologyRequest& request, int ranks) {
    return [=] { resolve(request, equal_hosts(1, ranks)); };
  };
  EXPECT_THAT(message_of<ConfigError>(refusal({.tp = 2}, 3)),
              HasSubstr("3 ranks cannot be divided into groups of 2"));
  EXPECT_THAT(message_of<ConfigError>(refusal({.tp = 4}, 2)), HasSubstr("groups of 4"));
  EXPECT_THAT(message_of<ConfigError>(refusal({.tp = 2, .dp = 4}, 4)),
              HasSubstr("dp (4) x tp (2) = 8 ranks, but the job has 4"));
  EXPECT_THAT(message_of<ConfigError>(refusal({.dp = 4}, 2)),
              HasSubstr("dp (4) x tp (1) = 4 ranks, but the job has 2"));
  EXPECT_THAT(message_of<ConfigError>([] { resolve({.strategy = "hsdp", .tp = 2}, equal_hosts(2, 3)); }),
              has_all("3 ranks of a host", "no multiple of tp (2)", "set dp_shard"));
}

}  // namespace
}  // namespace stretto
