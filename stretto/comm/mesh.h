#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/comm/group.h"

namespace stretto {

// How many ranks each dimension of a mesh has. Their product is the world size.
struct MeshShape {
  int pp = 1;            // pipeline stages
  int dp_replicate = 1;  // replicas of the model (of a sharded one, where dp_shard > 1)
  int dp_shard = 1;      // ranks that each hold a shard of a replica
  int tp = 1;            // ranks that share the work on each layer

  int ranks() const;         // the product; INT_MAX where it is larger
  std::string text() const;  // "pp 1 x dp_replicate 2 x dp_shard 4 x tp 2"
  bool operator==(const MeshShape&) const = default;
};

// The ranks of a job, arranged in named dimensions. A rank has a position in each of them, and for each of them a group:
// the ranks that differ from it in that position only.
//
//   Mesh mesh(world, {.dp_replicate = 2, .tp = 2});      two hosts of two GPUs, in all ranks
//   mesh.group("tp")   ranks 0 1 | 2 3                   the neighbours: ranks of one host
//   mesh.group("dp")   ranks 0 2 | 1 3
//   mesh.world()       ranks 0 1 2 3
//
// Ranks are ordered by host, in the order of each host's first rank, whatever order the launcher numbered them in; the last
// dimension (tp) varies fastest, the first (pp) slowest. So the ranks of the innermost dimensions share a host where they
// can, and with it, on CPUs, memory.
class Mesh {
 public:
  // Every rank of `world` must make it, with the same shape. Collective. Throws ConfigError, with the equation, where the
  // sizes are not positive or do not multiply to world.size(). REQUIRES: `world` outlives the mesh.
  Mesh(Group& world, const MeshShape& shape);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // All ranks have the same model and different data.
  static MeshShape data_parallel(int world_size) { return {.dp_replicate = world_size}; }

  // Everyone: what all must agree on (which step, stop, save) is decided here.
  Group& world() const { return world_; }

  // This rank's group of "pp", "dp_replicate", "dp_shard" or "tp", or of "dp": dp_replicate and dp_shard together, in that
  // order, which is the ranks that see different data. Its rank() is this rank's position there. Where a dimension has all
  // ranks its group is world() itself: calls of both are then in one order. Throws ConfigError for another name.
  Group& group(std::string_view name) const;

  const MeshShape& shape() const { return shape_; }
  int size(std::string_view name) const { return group(name).size(); }
  int position(std::string_view name) const { return group(name).rank(); }

 private:
  struct Named {
    std::string name;
    int stride, extent;  // of its ranks in the order by hosts
    Group* group;
    std::unique_ptr<Group> owned;  // null where another name, or the world, has the same ranks
  };
  void add(const char* name, const std::vector<int>& order, int stride, int extent);

  Group& world_;
  MeshShape shape_;
  std::vector<Named> groups_;
};

}  // namespace stretto
