#include <gtest/gtest.h>

#include "stretto/comm/rank_threads.h"
#include "stretto/nn/layers.h"
#include "stretto/optim/optimizers.h"
#include "stretto/parallel/engine.h"
#include "stretto/parallel/mesh_fixture.h"

namespace stretto::parallel {
namespace {

// Adding a strategy takes one registration: the engine reads all its properties from the row.
[[maybe_unused]] const bool added = register_sharding({.name = "added", .optimizer = Held::sharded});

TEST(AddedStrategy, TrainsAsItsRowDeclares) {
  comm::run_rank_threads(2, [](Group& group) {
    torch::nn::Module root;
    const auto layer = root.register_module("layer", std::make_shared<nn::Linear>(40, 40));
    layer->weight.detach().fill_(0.1);
    const Mesh mesh = mesh_of(group, "added");
    Engine engine(root, mesh, {.strategy = "added"}, optim::adamw({.lr = 0.1}));
    const Tensor before = layer->weight.detach().clone();
    engine.backward(layer->forward(at::ones({2, 40})).square().sum(), Reduce::last);
    engine.finish();
    engine.step({.rates = {.lr = 0.1}});
    EXPECT_FALSE(at::equal(layer->weight, before));
    engine.compare_replicas();
    EXPECT_LT(engine.facts().memory.optimizer, 2 * 4 * engine.facts().elements)
        << "each rank holds a part of the state";
  });
}

}  // namespace
}  // namespace stretto::parallel
