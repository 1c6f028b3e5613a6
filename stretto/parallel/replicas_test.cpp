#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/parallel/engine_fixture.h"

namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

// Ranks 1 and 3 are ranks 0 and 1 of their group.
TEST(Engine, DivergedRanksAreNamedByTheirNumbersInTheJob) {
  comm::run_rank_threads(4, [](Group& world) {
    Mlp net;
    const Mesh mesh(world, {.dp_replicate = 2, .tp = 2});
    Engine engine(net, mesh, {}, nullptr);
    engine.compare_replicas();
    const Tensor weights = master_weights(engine);
    if (world.rank() == 3) weights[3] += 1;
    if (world.rank() % 2 == 0) return engine.compare_replicas();
    EXPECT_THAT(message_of<DistributedError>([&] { engine.compare_replicas(); }),
                HasSubstr("the parameters of rank 3 differ from rank 1's"));
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
    EXPECT_THAT(message_of<DistributedError>([&] { engine.compare_replicas(); }),
                HasSubstr("the parameters of rank 3 differ from rank 1's"));
  });
}

}  // namespace
}  // namespace stretto::parallel
