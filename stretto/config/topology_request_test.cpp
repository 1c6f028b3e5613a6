#include "stretto/config/topology_request.h"

#include <gmock/gmock.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Topology topology(const std::string& settings, int ranks) {
  return resolve(topology_request(parse_recipe("training:\n" + settings, "r.yaml")), equal_hosts(1, ranks));
}

TEST(TopologyRequest, ContainsTheSettingsOfTheRecipe) {
  const Topology hybrid = topology("  strategy: hsdp\n  dp_shard: 2\n  batch_size: 3\n", 6);
  EXPECT_EQ(hybrid.shape, (MeshShape{.dp_replicate = 3, .dp_shard = 2}));
  EXPECT_EQ(hybrid.batch.global_batch_size, 18);
  const BatchPlan batch = topology("  max_tokens: 64\n  grad_accumulation_steps: 2\n", 2).batch;
  EXPECT_EQ(batch.max_tokens, 64);
  EXPECT_EQ(batch.grad_accumulation_steps, 2);
}

TEST(TopologyRequest, ContradictionsNameTheLines) {
  EXPECT_THAT(message_of<ConfigError>([] { topology("  batch_size: 32\n  global_batch_size: 100\n", 2); }),
              AllOf(StartsWith("r.yaml:3:22: training.global_batch_size: global_batch_size (100) = "),
                    HasSubstr("or training.batch_size (r.yaml:2:15) to 50")));
  EXPECT_THAT(message_of<ConfigError>([] { topology("  strategy: hsdp\n  dp_shard: 4\n", 6); }),
              AllOf(StartsWith("r.yaml:3:13: training.dp_shard: "), has_all("6 ranks", "copies of 4 ranks")));
  EXPECT_THAT(message_of<ConfigError>([] { topology("  deterministic: true\n", 2); }),
              HasSubstr("set training.global_batch_size and training.batch_size"));
}

}  // namespace
}  // namespace stretto
