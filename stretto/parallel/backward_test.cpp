#include "stretto/parallel/backward.h"

#include <array>

#include <gtest/gtest.h>

#include "stretto/parallel/engine_fixture.h"

namespace stretto::parallel {
namespace {

// One step from three micro-batches per rank.
NamedTensors accumulate(Group& group, const std::string& strategy) {
  Mlp net;
  const Mesh mesh = mesh_of(group, strategy);
  Engine engine(net, mesh, {.strategy = strategy, .bucket_bytes = 64}, optim::adamw({.lr = 0.05}));
  for (int64_t micro = 0; micro < 3; ++micro) {
    const auto parts = mlp_inputs(micro).chunk(group.size());
    const Tensor loss = net.forward(parts[static_cast<size_t>(group.rank())]);
    engine.backward(micro == 1 && group.rank() == 1 ? Tensor() : loss,
                    micro == 2 ? Reduce::last : Reduce::later);
  }
  std::array<double, 1> total = {1};
  engine.finish(total);
  EXPECT_EQ(total[0], group.size());
  engine.step({.rates = {.lr = 0.05}, .grad_scale = clip_scale(engine.gradients().norm(), 1)});
  NamedTensors weights;
  for (const auto& [name, tensor] : engine.weights().all()) weights[name] = tensor.clone();
  return weights;
}

TEST(Engine, ShardedGradientsAccumulateOverMicroBatches) {
  comm::run_rank_threads(2, [](Group& group) {
    const NamedTensors expected = accumulate(group, "ddp");
    for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
      for (const auto& [name, tensor] : accumulate(group, strategy))
        EXPECT_TRUE(at::allclose(tensor, expected.at(name), 1e-5, 1e-6)) << strategy << " " << name;
    }
  });
}

// An exception leaves a pass unclosed. The other rank does not wait for gradients that are never computed.
TEST(Engine, APassThatIsNotClosedLeavesZeroGradientsAndDoesNotBlockOthers) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, optim::adamw({}));
    const Tensor loss = net.forward(mlp_inputs(group.rank()));
    {
      Backward pass = engine.open(engine.uses(loss), Reduce::last);
      if (group.rank() == 1) {
        loss.backward();
        pass.close();
      }
    }
    if (group.rank() == 1) {
      engine.finish();
    } else {
      EXPECT_EQ(largest_gradient(net), 0);
    }
    engine.gradients().clear();
    engine.backward(net.forward(mlp_inputs(group.rank())), Reduce::last);
    engine.finish();
    EXPECT_GT(engine.gradients().norm(), 0);
  });
}

}  // namespace
}  // namespace stretto::parallel
