#pragma once

#include <array>
#include <string>
#include <vector>

#include "stretto/base/mesh_axis.h"

namespace stretto {

// The number of ranks on each axis of a mesh, whose product is the number of ranks, and the order in which
// numbered ranks fill the axes.
struct MeshShape {
  int pp = 1;
  int dp_replicate = 1;
  int dp_shard = 1;
  int cp = 1;
  int tp = 1;
  // The axes from the one that varies slowest with the rank to the one that varies fastest.
  std::array<Axis, 5> order = all_axes;

  int size(Axes axes) const;  // the product of these; INT_MAX where it is larger
  int ranks() const { return size(Axes::world); }
  std::string text() const;  // "pp 1 x dp_replicate 2 x dp_shard 4 x cp 1 x tp 2", in `order`
  bool operator==(const MeshShape&) const = default;
};

// Throws ConfigError, with the equation, unless every axis of `shape` has a rank, their product is `ranks`,
// and its order lists each axis once.
void require_ranks(const MeshShape& shape, int ranks);

// Returns the ranks in the order in which they fill a mesh: ranks of one host are adjacent, and hosts are in
// the order of their first rank, so that ranks along the fastest axes share a host if possible. `hosts`: the
// name of each rank's host.
std::vector<int> ranks_by_host(const std::vector<std::string>& hosts);

// The groups of ranks that differ on `axes` only. Each group is in the order of `row`; groups are in the
// order of their first ranks. `row`: the rank at each position of the mesh, as from ranks_by_host().
// REQUIRES: shape.ranks() == row.size().
std::vector<std::vector<int>> groups_along(const MeshShape& shape, Axes axes, const std::vector<int>& row);

// Whether ranks that differ on `axes` only are on different hosts. `hosts`: the name of each rank's host.
bool spans_hosts(const MeshShape& shape, Axes axes, const std::vector<std::string>& hosts);

}  // namespace stretto
