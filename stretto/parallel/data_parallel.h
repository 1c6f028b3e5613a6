#pragma once

#include "stretto/comm/mesh.h"
#include "stretto/strategy/sharding.h"

namespace stretto::parallel {

// The ranks that train one model on different data, grouped by the part of it that they hold under a
// strategy; and the ranks among which its layers are divided. REQUIRES: the mesh outlives this object.
struct DataParallel {
  DataParallel(const Mesh& mesh, const Sharding& sharding);

  Group& all;    // Axes::sum
  Group& shard;  // Axes::shard, which hold one copy of what the strategy shards; `all` if it shards nothing
  Group* replicas = nullptr;  // Axis::dp_replicate, which hold the same shard; null: there is one copy
  Group& parts;               // Axis::tp
  Group& stage;               // Axes::stage: all ranks that hold copies of a parameter that is not divided
  Group& copies;              // {dp_replicate, tp}: those of them that hold the same shard
};

}  // namespace stretto::parallel
