#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/strategy/mesh_shape.h"

namespace stretto {

struct BatchPlan;

// This rank among the ranks along some axes of a mesh, and collectives over them for the steps of a program.
// It is valid for the lifetime of the mesh.
class AxisRanks {
 public:
  // `why_not`: the message with which collectives are refused; "": they can be called.
  explicit AxisRanks(Group& group, std::string why_not = "", bool divides_rows = false)
      : group_(&group), why_not_(std::move(why_not)), divides_rows_(divides_rows) {}

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  // Whether these ranks, among which layers are divided, also divide the rows of tensors between them
  // (sequence parallelism).
  bool divides_rows() const { return divides_rows_; }

  // For all other collectives. Throws ConfigError if collectives are refused here.
  Group& group() const;

  // All of these ranks call them in the same order, with tensors of one shape, which may be any. The results
  // are new tensors on the ranks' device, without a graph: of that shape, or [size(), ...]. Throw like
  // group().
  Tensor all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum) const;
  Tensor all_gather(const Tensor& tensor) const;
  Tensor broadcast(const Tensor& tensor, int source = 0) const;  // `source`: the rank whose tensor all get

 private:
  Group* group_;
  std::string why_not_;
  bool divides_rows_;
};

// The ranks of a job, arranged along axes (base/mesh_axis.h). A rank has a position on each axis and, for a
// set of axes, a group: the ranks that differ from it on these axes only.
//
//   Mesh mesh(world, {.dp_replicate = 2, .tp = 2});      two hosts of two GPUs, in all ranks
//   mesh.group(Axis::tp)    ranks 0 1 | 2 3              the neighbours: ranks of one host
//   mesh.group(Axes::data)  ranks 0 2 | 1 3
//   mesh.world()            ranks 0 1 2 3
//
// Ranks are ordered by host, in the order of each host's first rank, regardless of the launcher's numbering;
// in that order the last axis of MeshShape::order varies fastest. Ranks of the fastest axes therefore share a
// host if possible, and on CPUs its memory.
class Mesh {
 public:
  // Every rank of `world` must construct it, with the same arguments. All groups are created here, in one
  // order. Collective. Throws ConfigError, with the equation, if the sizes are not positive or their product
  // is not world.size(). `divides_rows`: see AxisRanks. REQUIRES: `world` outlives the mesh; `batch` is of
  // the same topology as `shape`.
  Mesh(Group& world, const MeshShape& shape, const BatchPlan& batch, bool divides_rows);
  Mesh(Group& world, const MeshShape& shape);  // without batches
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // The group of all ranks, for decisions that all must agree on (which step, stop, save).
  Group& world() const { return world_; }

  // The ranks that differ from this one on `axes` only: a single axis, or a set that Axes names. Sets with
  // the same ranks in the same order share one group, and thereby one order of calls; it is world() if these
  // are all ranks in the launcher's order. Throws ConfigError for any other set.
  Group& group(Axes axes) const;

  const MeshShape& shape() const { return shape_; }
  // The batch plan of the ranks of Axes::data; it has no samples on a mesh that was created without batches.
  const BatchPlan& batch_plan() const { return *batch_; }
  int size(Axes axes) const { return shape_.size(axes); }
  int position(Axes axes) const { return group(axes).rank(); }

  // The ranks that train on different samples, and those among which layers are divided, for a program's own
  // collectives.
  AxisRanks data_parallel() const { return AxisRanks(group(Axes::data)); }
  AxisRanks tensor_parallel() const { return AxisRanks(group(Axis::tp), "", divides_rows_); }

  // How layers are divided among ranks, for logs: "dp 2 x tp 2: each layer is divided among 2 ranks, ...".
  std::string describe() const;

  // Seconds that this rank has spent inside calls of all these groups: see Group::seconds_inside().
  double seconds_inside() const;

 private:
  struct Named {
    Axes axes;
    Group* group;
  };

  Group& world_;
  MeshShape shape_;
  std::shared_ptr<const BatchPlan> batch_;
  bool divides_rows_;
  std::vector<std::unique_ptr<Group>> owned_;
  std::vector<Named> groups_;
};

}  // namespace stretto
