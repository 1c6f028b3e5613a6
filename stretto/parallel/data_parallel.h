#pragma once

#include "stretto/comm/mesh.h"
#include "stretto/strategy/sharding.h"

namespace stretto {

// The ranks that train one model on different data, by what they hold of it. The groups outlive this.
struct DataParallel {
  Group& all;
  Group& shard;               // together hold one copy of what the strategy shards
  Group* replicas = nullptr;  // hold the same shard of other copies; null: there is one copy

  DataParallel(Group& group) : all(group), shard(group) {}  // NOLINT(google-explicit-constructor)
  // The "dp" ranks of a mesh; under a hybrid strategy "dp_shard" hold a copy.
  DataParallel(const Mesh& mesh, const Sharding& sharding);
};

// The mesh of a job that is data parallel only. `shard_ranks`: the ranks per copy under a hybrid strategy; 0: the ranks of
// each host. Collective. Throws ConfigError if these do not divide the ranks, or if hosts differ in their number of ranks.
MeshShape data_parallel_shape(Group& world, const Sharding& sharding, int64_t shard_ranks = 0);

}  // namespace stretto
