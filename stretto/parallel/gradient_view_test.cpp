#include "stretto/parallel/gradient_view.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "stretto/parallel/engine_fixture.h"

namespace stretto::parallel {
namespace {

TEST(Engine, ANonFiniteGradientIsNamedByItsOwner) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group, "zero2");
    Engine engine(net, mesh, {.strategy = "zero2"}, optim::adamw({}));
    const Tensor bad = net.first->bias.sum() * std::numeric_limits<double>::infinity();
    engine.backward(net.forward(mlp_inputs(0)) + (group.rank() == 1 ? bad : at::zeros({})), Reduce::last);
    engine.finish();
    EXPECT_FALSE(std::isfinite(engine.gradients().norm()));
    EXPECT_EQ(engine.gradients().first_nonfinite(), "first.bias");
    engine.skip_step();
    EXPECT_EQ(engine.gradients().norm(), 0);
  });
}

}  // namespace
}  // namespace stretto::parallel
