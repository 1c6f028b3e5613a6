#pragma once

#include <memory>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/strategy/mesh_shape.h"

namespace stretto {

// The ranks of a job, arranged along axes (base/mesh_axis.h). A rank has a position on each, and for a set of
// axes a group: the ranks that differ from it on these only.
//
//   Mesh mesh(world, {.dp_replicate = 2, .tp = 2});      two hosts of two GPUs, in all ranks
//   mesh.group(Axis::tp)    ranks 0 1 | 2 3              the neighbours: ranks of one host
//   mesh.group(Axes::data)  ranks 0 2 | 1 3
//   mesh.world()            ranks 0 1 2 3
//
// Ranks are ordered by host, in the order of each host's first rank, whatever order the launcher numbered
// them in; along that row the last axis of MeshShape::order varies fastest. So the ranks of the fastest axes
// share a host where they can, and with it, on CPUs, memory.
class Mesh {
 public:
  // Every rank of `world` must make it, with the same shape. All groups are made here, in one order.
  // Collective. Throws ConfigError, with the equation, where the sizes are not positive or do not multiply to
  // world.size(). REQUIRES: `world` outlives the mesh.
  Mesh(Group& world, const MeshShape& shape);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Everyone: what all must agree on (which step, stop, save) is decided here.
  Group& world() const { return world_; }

  // The ranks that differ from this one on `axes` only: of a single axis, or of a set that Axes names. Sets
  // with the same ranks in the same order have one group, which is world() where these are all ranks as the
  // launcher numbered them: calls of both are then in one order. Throws ConfigError for another set.
  Group& group(Axes axes) const;

  const MeshShape& shape() const { return shape_; }
  int size(Axes axes) const { return shape_.size(axes); }
  int position(Axes axes) const { return group(axes).rank(); }

 private:
  struct Named {
    Axes axes;
    Group* group;
  };

  Group& world_;
  MeshShape shape_;
  std::vector<std::unique_ptr<Group>> owned_;
  std::vector<Named> groups_;
};

}  // namespace stretto
