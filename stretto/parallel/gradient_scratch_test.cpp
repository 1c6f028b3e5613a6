#include "stretto/parallel/gradient_scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/parallel/reducer.h"

namespace stretto::parallel {
namespace {

using Layer = nn::Sharded<nn::Linear>;

// Four blocks, called in an order that differs from their registration; the second is called twice, the last
// is not used.
struct Blocks : torch::nn::Module {
  Blocks() {
    at::Generator random = at::detail::createCPUGenerator(7);
    at::NoGradGuard no_grad;
    for (int i = 0; i < 4; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), nn::make_sharded<nn::Linear>(8, 8)));
      for (Tensor& parameter : layers.back()->parameters()) parameter.normal_(0, 0.5, random);
    }
    to(at::kDouble);
  }
  Tensor forward(const Tensor& x, bool checkpointed = false) {
    const auto second = [this](const nn::Carry& carry) { return at::tanh(layers[1]->forward(carry[0])); };
    const std::vector<Tensor> parameters = {layers[1]->weight, layers[1]->bias};
    Tensor y = checkpointed ? nn::activation_checkpoint(second, {x}, parameters) : second({x});
    y = at::tanh(layers[0]->forward(at::tanh(layers[2]->forward(y))));
    return second({y}).square().sum();
  }
  std::vector<std::shared_ptr<Layer>> layers;
};

Tensor block_inputs() { return at::linspace(-1, 1, 48, at::kDouble).view({6, 8}); }

Arena sharded_arena(Blocks& net, const Group& group) {
  return Arena(collect_tensors(net).trainable,
               {.precision = Precision::fp64,
                .optimizer = Held::sharded,
                .gradients = Held::sharded,
                .shards = group.size(),
                .shard = group.rank()},
               {.gradients = group.allocator()});
}

size_t open_units(const Arena& arena) {
  return static_cast<size_t>(
      std::ranges::count_if(arena.units(), [](const Arena::Unit& u) { return u.gradients.defined(); }));
}

class ShardedGradients : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ShardedGradients, ::testing::Values(2, 3, 5));

TEST_P(ShardedGradients, EqualThoseOfOneRankInAnyOrderOfUse) {
  Blocks alone;
  Arena whole(collect_tensors(alone).trainable, {.precision = Precision::fp64});
  alone.forward(block_inputs()).backward();
  for (const bool checkpointed : {false, true}) {
    comm::run_rank_threads(GetParam(), [&](Group& group) {
      Blocks net;
      Arena arena = sharded_arena(net, group);
      const size_t open_at_rest = open_units(arena);
      Reducer reducer(arena, group, {.bucket_bytes = 200, .to_owners = true});
      const Tensor x = block_inputs().tensor_split(group.size())[static_cast<size_t>(group.rank())];
      for (int step = 0; step < 2; ++step) {
        // half of the loss in each backward, without and with communication
        for (const bool last : {false, true}) {
          reducer.backward(net.forward(x, checkpointed) / 2, last);
          if (!last) {
            EXPECT_EQ(open_units(arena), arena.units().size());
          }
        }
        reducer.finish();
        EXPECT_EQ(open_units(arena), open_at_rest);
        arena.verify();
        const Range owned = arena.owned() & Range{0, whole.elements()};
        EXPECT_TRUE(at::allclose(arena.gradients(owned), whole.gradients(owned)));
        reducer.zero_gradients();
        reducer.gradients_were_zeroed();
      }
    });
  }
}

// A rank without a loss takes part, and gradients of earlier backward passes stay in the shard.
TEST(GradientScratch, RanksWithoutALossTakePart) {
  comm::run_rank_threads(2, [](Group& group) {
    Blocks net;
    Arena arena = sharded_arena(net, group);
    Reducer reducer(arena, group, {.bucket_bytes = 1e6, .to_owners = true});
    Tensor once;
    for (const int passes : {1, 2}) {
      reducer.backward(group.rank() == 0 ? net.forward(block_inputs()) : Tensor(), true);
      reducer.finish();
      if (passes == 1) once = arena.buffers().grad.clone();
    }
    EXPECT_GT(once.abs().sum().item<double>(), 0);
    EXPECT_TRUE(at::allclose(arena.buffers().grad, 2 * once));
  });
}

TEST(GradientScratch, FewBuffersServeAllUnits) {
  Blocks net;
  Arena arena(collect_tensors(net).trainable,
              {.optimizer = Held::sharded, .gradients = Held::sharded, .shards = 4, .shard = 3});
  EXPECT_EQ(arena.gradient_range().begin, arena.units()[3].elements.begin);
  int allocated = 0;
  GradientScratch scratch(arena, [&](int64_t elements, at::ScalarType dtype, at::Device device) {
    ++allocated;
    return plain_memory()(elements, dtype, device);
  });
  for (size_t unit = 3; unit-- > 0;) {
    scratch.open(unit);
    EXPECT_TRUE(net.layers[unit]->weight.grad().defined());
    EXPECT_EQ(net.layers[unit]->weight.grad().abs().sum().item<float>(), 0) << "used memory was not cleared";
    net.layers[unit]->weight.mutable_grad().fill_(1);
    scratch.close(unit + 1);
  }
  scratch.close_all();
  EXPECT_EQ(allocated, 2);
  EXPECT_FALSE(net.layers[0]->weight.grad().defined());
}

// Backward may reach a unit before it has memory: gradients that autograd allocated are kept.
TEST(GradientScratch, GradientsThatAutogradAllocatedAreMovedIn) {
  Blocks net;
  Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp64,
                                               .optimizer = Held::sharded,
                                               .gradients = Held::sharded,
                                               .shards = 100,
                                               .shard = 99});
  GradientScratch scratch(arena, plain_memory());
  net.layers[0]->weight.mutable_grad() = at::full({8, 8}, 3.0, at::kDouble);
  scratch.open(0);
  arena.verify();
  EXPECT_EQ(arena.units()[0].gradients.slice(0, 0, 64).min().item<double>(), 3);
}

}  // namespace
}  // namespace stretto::parallel
