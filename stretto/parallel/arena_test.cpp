#include "stretto/parallel/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/parallel/tied_net_fixture.h"

namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Arena, UnitsDecayAndFrozenParameters) {
  TiedNet net;
  const ModuleTensors tensors = collect_tensors(net);
  EXPECT_EQ(tensors.trainable.size(), 6u);
  EXPECT_EQ(tensors.frozen.size(), 2u);
  Arena arena(tensors.trainable, {.precision = Precision::bf16});
  EXPECT_EQ(net.once->weight.scalar_type(), at::kBFloat16);
  EXPECT_EQ(net.once->weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(arena.trainable_elements(), 3 * 30);
  const auto pieces = arena.owned_pieces();
  ASSERT_EQ(pieces.size(), 6u);  // weight (with weight decay) and bias (without) alternate
  EXPECT_TRUE(pieces[0].weight_decay);
  EXPECT_FALSE(pieces[1].weight_decay);
}

TEST(Arena, ReplacedTensorsAreRefusedByName) {
  TiedNet net;
  Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp32});
  arena.verify();
  net.once->weight.mutable_grad() = Tensor();
  EXPECT_THAT(message_of([&] { arena.verify(); }),
              HasSubstr("the gradient of once.weight was replaced or dropped"));
  TiedNet other;
  Arena second(collect_tensors(other).trainable, {.precision = Precision::fp32});
  other.to(at::kDouble);
  EXPECT_THAT(message_of([&] { second.verify(); }), HasSubstr("parameter tied.weight was replaced"));
}

TEST(Arena, DroppedGradientsAreBoundAgainAsZeros) {
  TiedNet net;
  Arena arena(collect_tensors(net).trainable, {.precision = Precision::fp32});
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

TEST(Arena, ShardsContainAllElementsAndCutTensorsWhereAllowed) {
  for (const auto placement : {optim::Placement::flat, optim::Placement::whole_tensor}) {
    std::vector<std::pair<std::string, int64_t>> owned;  // name, elements, of all shards
    for (int shard = 0; shard < 3; ++shard) {
      TiedNet net;
      Arena arena(
          collect_tensors(net).trainable,
          {.precision = Precision::bf16,
           .optimizer = Held::sharded,
           .shards = 3,
           .shard = shard,
           .placement = placement,
           .copies_of_whole = {.holders = {.set = 1, .ranks = 6}, .shard_holders = {.set = 2, .ranks = 2}}});
      EXPECT_TRUE(arena.master_is_sharded());
      EXPECT_EQ(arena.buffers().master.numel(), arena.owned().size());
      EXPECT_EQ(arena.owned_buffers().grad.numel(), arena.owned().size());
      for (const auto& piece : arena.owned_pieces()) {
        EXPECT_EQ(piece.holders.set, 2u);
        if (!owned.empty() && owned.back().first == piece.name) {
          EXPECT_EQ(placement, optim::Placement::flat);
          EXPECT_EQ(piece.first, owned.back().second);
          owned.back().second += piece.end - piece.begin;
        } else {
          EXPECT_EQ(piece.first, 0);
          owned.emplace_back(piece.name, piece.end - piece.begin);
        }
      }
      if (placement == optim::Placement::flat) {
        EXPECT_EQ(arena.owned().size() * 3, arena.elements());
      }
    }
    EXPECT_THAT(owned, ::testing::ElementsAre(Pair("tied.weight", 25), Pair("tied.bias", 5),
                                              Pair("once.weight", 25), Pair("once.bias", 5),
                                              Pair("unused.weight", 25), Pair("unused.bias", 5)));
  }
}

TEST(CollectTensors, RefusesWhatCannotBeTrained) {
  struct Complex : torch::nn::Module {
    Complex() { register_parameter("z", at::zeros({2}, at::kComplexFloat)); }
  };
  Complex complex;
  EXPECT_THROW(collect_tensors(complex), ConfigError);
  struct Frozen : torch::nn::Module {
    Frozen() { register_parameter("w", at::zeros({2}), /*requires_grad=*/false); }
  };
  Frozen frozen;
  EXPECT_THROW(Arena(collect_tensors(frozen).trainable, {}), ConfigError);
}

}  // namespace
}  // namespace stretto::parallel
