#pragma once

#include <array>
#include <string>
#include <vector>

#include "stretto/base/mesh_axis.h"

namespace stretto {

// How many ranks each axis of a mesh has, and how ranks that are numbered in a row lie on it. Their product
// is the number of ranks.
struct MeshShape {
  int pp = 1;
  int dp_replicate = 1;
  int dp_shard = 1;
  int cp = 1;
  int tp = 1;
  // From the axis that varies slowest along the row of ranks to the one that varies fastest.
  std::array<Axis, 5> order = all_axes;

  int size(Axes axes) const;  // the product of these; INT_MAX where it is larger
  int ranks() const { return size(Axes::world); }
  std::string text() const;  // "pp 1 x dp_replicate 2 x dp_shard 4 x cp 1 x tp 2", in `order`
  bool operator==(const MeshShape&) const = default;
};

// Throws ConfigError, with the equation, where `shape` has an axis without ranks or not `ranks` in all, or
// its order lists an axis twice.
void require_ranks(const MeshShape& shape, int ranks);

// Ranks of one host next to each other, hosts in the order of their first rank: rank numbers in the order in
// which they lie on a mesh. `hosts`: the name of each rank's host. Ranks along the fastest axes so share a
// host where they can.
std::vector<int> ranks_by_host(const std::vector<std::string>& hosts);

// The groups of ranks that differ on `axes` only. The ranks of each are in the order of `row`, and so are the
// groups, by their first. `row`: the rank at each place, as from ranks_by_host(). REQUIRES: shape.ranks() ==
// row.size().
std::vector<std::vector<int>> groups_along(const MeshShape& shape, Axes axes, const std::vector<int>& row);

}  // namespace stretto
