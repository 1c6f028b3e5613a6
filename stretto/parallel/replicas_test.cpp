#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/parallel/engine_fixture.h"

namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

TEST(Engine, DivergedRanksAreNamed) {
  comm::run_rank_threads(2, [](Group& group) {
    Mlp net;
    const Mesh mesh = mesh_of(group);
    Engine engine(net, mesh, {}, nullptr);
    engine.compare_replicas();
    const Tensor weights = master_weights(engine);
    if (group.rank() == 1) weights[3] += 1;
    EXPECT_THAT([&] { engine.compare_replicas(); }, ::testing::ThrowsMessage<DistributedError>(HasSubstr(
                                                        "the parameters of rank 1 differ from rank 0's")));
  });
}

TEST(Engine, DivergedCopiesAreNamed) {
  comm::run_rank_threads(4, [](Group& group) {
    Mlp net;
    const Mesh mesh(group, {.dp_replicate = 2, .dp_shard = 2});
    Engine engine(net, mesh, {.strategy = "hsdp"}, optim::adamw({}));
    engine.compare_replicas();
    const Tensor weights = master_weights(engine);
    if (group.rank() == 3) weights[0] += 1;
    EXPECT_THAT([&] { engine.compare_replicas(); }, ::testing::ThrowsMessage<DistributedError>(HasSubstr(
                                                        "the parameters of rank 3 differ from rank 1's")));
  });
}

}  // namespace
}  // namespace stretto::parallel
