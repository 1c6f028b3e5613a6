#include "stretto/parallel/weight_view.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/parallel/engine_fixture.h"
#include "stretto/tensor/region_fixture.h"
#include "stretto/tensor/safetensors.h"

namespace stretto::parallel {
namespace {

// The weights can be read any number of times, in any parts, and the reader may throw.
TEST(Engine, GathersWeightsOnTheFirstRankWhenItReadsThem) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp", "hsdp"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      for (const bool shares : {true, false}) {
        comm::run_rank_threads(4, [&](Group& group) {
          Mlp net;
          const Mesh mesh = mesh_of(group, strategy);
          Engine engine(
              net, mesh,
              {.strategy = strategy, .precision = parse_precision(precision), .shared_parameters = shares},
              optim::adamw({.lr = 0.05}));
          engine.backward(net.forward(mlp_inputs(group.rank())), Reduce::last);
          engine.finish();
          engine.step({.rates = {.lr = 0.05}});
          const NamedTensors all = engine.weights().all();
          bool used = false;
          engine.weights().at_first([&](const ListedSource& first) {
            used = true;
            EXPECT_EQ(first.types().size(), all.size());
            std::mt19937 random(4);
            for (const auto& [name, tensor] : all) {
              EXPECT_EQ(first.types().at(name).dtype, tensor.scalar_type());
              EXPECT_TRUE(first.copy(name).equal(tensor)) << name;
              const Region region = random_region(tensor.sizes(), random);
              const Tensor values = at::empty({region.elements()}, tensor.options());
              first.read(name, region, values);
              EXPECT_TRUE(values.equal(part_of(tensor, region))) << name;
            }
          });
          EXPECT_EQ(used, group.rank() == 0);
          const auto fail = [](const ListedSource&) { throw Error("no room"); };
          if (group.rank() == 0) {
            EXPECT_THROW(engine.weights().at_first(fail), Error);
          } else {
            engine.weights().at_first(fail);
          }
          engine.compare_replicas();
        });
      }
    }
  }
}

// The file is the same under all strategies and for any number of ranks.
TEST(Engine, WeightsOfAnyStrategyAreTheSameFile) {
  const TempFolder folder;
  const auto saved = [&](const char* strategy, int ranks, bool shares) {
    const auto file = folder.path() / "model.safetensors";
    comm::run_rank_threads(ranks, [&](Group& group) {
      Mlp net;
      const Mesh mesh = mesh_of(group, strategy);
      Engine engine(net, mesh, {.strategy = strategy, .shared_parameters = shares}, optim::adamw({}));
      engine.weights().at_first([&](const ListedSource& weights) { save_safetensors(file, weights); });
    });
    return read_file(file);
  };
  const std::string expected = saved("ddp", 1, true);
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const bool shares : {true, false}) EXPECT_EQ(saved(strategy, ranks, shares), expected) << strategy;
    }
  }
}

TEST(Engine, NamesWeightsThatAreNotFinite) {
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    comm::run_rank_threads(3, [&](Group& group) {
      Mlp net;
      const Mesh mesh = mesh_of(group, strategy);
      Engine engine(net, mesh, {.strategy = strategy, .shared_parameters = false}, optim::adamw({}));
      EXPECT_EQ(engine.weights().first_nonfinite(), "");
      const Tensor last = master_weights(engine, "last.bias");
      if (group.rank() == 2) last[0] = INFINITY;
      EXPECT_EQ(engine.weights().first_nonfinite(),
                std::string(strategy) != "ddp" || group.rank() == 2 ? "last.bias" : "");
    });
  }
}

TEST(Engine, StateAndWeightsHaveRankZerosBuffers) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, optim::sgd({}));
    EXPECT_FALSE(engine.buffers_changed());
    net.mean.fill_(10 + group.rank());
    EXPECT_TRUE(engine.buffers_changed());
    EXPECT_EQ(engine.weights().all().at("mean").max().item<float>(), 10);
    net.mean.fill_(20 + group.rank());
    State state;
    engine.add_state(state);
    EXPECT_EQ(net.mean.max().item<float>(), 20);
  });
}

}  // namespace
}  // namespace stretto::parallel
