#include <gtest/gtest.h>

#include "stretto/nn/parameter_values.h"
#include "stretto/parallel/engine_fixture.h"

namespace stretto::parallel {
namespace {

// A source of an Mlp's parameters that counts the elements that are read.
struct CountingSource : MemorySource {
  explicit CountingSource(double seed) : MemorySource(parameters_of(Mlp(seed))) {}
  static NamedTensors parameters_of(const Mlp& net) {
    NamedTensors parameters;
    for (const auto& item : net.named_parameters()) parameters[item.key()] = item.value();
    return parameters;
  }
  void read(const std::string& name, const Region& region, const Tensor& values) const override {
    elements_read += region.elements();
    MemorySource::read(name, region, values);
  }
  mutable int64_t elements_read = 0;
};

// If the sources of the ranks differ, that of rank 0 is used. Shards of four ranks divide parameters.
TEST(Engine, ReadsParametersFromItsSource) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    for (const char* precision : {"fp32", "bf16", "fp64"}) {
      for (const bool shares : {true, false}) {
        for (const bool differ : {true, false}) {
          comm::run_rank_threads(4, [&](Group& group) {
            Mlp net(7);
            const CountingSource source(differ ? 1 + group.rank() : 1);
            nn::drop_values(net, source, at::kCPU);
            const Mesh mesh = mesh_of(group, strategy);
            Engine engine(
                net, mesh,
                {.strategy = strategy, .precision = parse_precision(precision), .shared_parameters = shares},
                optim::adamw({}), &source);
            const Mlp expected(1);
            const auto parameters = expected.named_parameters();
            const NamedTensors weights = engine.weights().all();
            for (const auto& item : parameters)
              EXPECT_TRUE(weights.at(item.key()).to(at::kFloat).equal(item.value())) << item.key();
            engine.compare_replicas();
          });
        }
      }
    }
  }
}

// Each rank reads the elements that it holds, once. Rank 0 also reads those of others, to compare them.
TEST(Engine, RanksReadTheirPartsOfParameters) {
  for (const char* strategy : {"ddp", "fsdp"}) {
    for (const bool shares : {true, false}) {
      comm::run_rank_threads(4, [&](Group& group) {
        Mlp net;
        const CountingSource source(1);
        const Mesh mesh = mesh_of(group, strategy);
        const Engine engine(net, mesh, {.strategy = strategy, .shared_parameters = shares}, optim::adamw({}),
                            &source);
        int64_t elements = 0;
        for (const Tensor& parameter : net.parameters())
          elements += parameter.requires_grad() ? parameter.numel() : 0;
        if (group.rank() == 0 || strategy == std::string("ddp")) {
          EXPECT_EQ(source.elements_read, elements) << strategy;
        } else {
          EXPECT_LE(source.elements_read, engine.facts().elements / 4);
        }
      });
    }
  }
}

// Values that the source lacks are those of the module, frozen or not.
TEST(Engine, KeepsParametersThatTheSourceLacks) {
  comm::run_rank_threads(2, [&](Group& group) {
    Mlp net(1 + group.rank());
    auto parameters = net.named_parameters();
    const std::string last = parameters.back().key(), first = parameters.front().key();
    parameters[first].set_requires_grad(false);
    const MemorySource source({{first, at::full_like(parameters[first], 5)}});
    const Mesh mesh = mesh_of(group, "zero1");
    Engine engine(net, mesh, {.strategy = "zero1"}, optim::adamw({}), &source);
    const NamedTensors weights = engine.weights().all();
    EXPECT_TRUE(weights.at(first).eq(5).all().item<bool>());
    EXPECT_TRUE(weights.at(last).equal(Mlp(1).named_parameters()[last]));
  });
}

TEST(Engine, StartsWithRankZerosTensors) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net(group.rank() + 1);
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, nullptr);
    const Mlp first(1);
    EXPECT_TRUE(at::equal(net.first->weight, first.first->weight));
    EXPECT_TRUE(at::equal(net.frozen, first.frozen));
    EXPECT_TRUE(at::equal(net.mean, first.mean));
  });
}

}  // namespace
}  // namespace stretto::parallel
