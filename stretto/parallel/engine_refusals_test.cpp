#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/parallel/engine_fixture.h"

// Modules and strategies that the engine refuses.
namespace stretto::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A rank has one part of a parameter for each position of the mesh's axis tp.
TEST(Engine, RefusesParametersThatAreCutOtherwiseThanByTheMesh) {
  struct Half : torch::nn::Module, nn::HasLayout {
    Half() { register_parameter("weight", at::zeros({2, 3})); }
    TensorLayout layout(const std::string&) const override {
      return {{4, 3}, {{.axis = 0, .intervals = {{0, 2}}, .largest = 2}}};
    }
  };
  comm::run_rank_threads(1, [](Group& group) {
    Half half;
    EXPECT_EQ(collect_tensors(half).trainable[0].layout.global, (std::vector<int64_t>{4, 3}));
    const Mesh mesh = mesh_of(group);
    EXPECT_THAT(message_of<ConfigError>([&] { Engine(half, mesh, {}, nullptr); }),
                has_all("parameter weight is cut", "each rank of the mesh"));
    half.parameters()[0].set_requires_grad(false);
    EXPECT_THAT(message_of<ConfigError>([&] { collect_tensors(half); }),
                HasSubstr("parameter weight is frozen, and cut over tp"));
  });
}

TEST(Engine, AShardedStrategyNeedsABundledOptimizer) {
  comm::run_rank_threads(1, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group, "zero1");
    EXPECT_THROW(Engine(net, mesh, {.strategy = "zero1"}, nullptr), ConfigError);
  });
}

TEST(Sharding, UnknownStrategiesAreNamedWithTheNearest) {
  EXPECT_EQ(find_sharding("ddp").optimizer, Held::replicated);
  EXPECT_THAT(message_of<ConfigError>([] { find_sharding("zero11"); }),
              AllOf(HasSubstr("did you mean \"zero1\""), HasSubstr("available: ddp")));
  EXPECT_THROW(register_sharding({.name = "ddp"}), ConfigError);
}

}  // namespace
}  // namespace stretto::parallel
