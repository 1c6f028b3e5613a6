#pragma once

#include <optional>
#include <string>

#include "stretto/comm/mesh.h"
#include "stretto/strategy/topology.h"

namespace stretto::parallel {

// The mesh on which resolve() arranges the ranks of one host under a strategy.
inline Mesh mesh_of(Group& group, const std::string& strategy = "ddp",
                    std::optional<int64_t> dp_shard = std::nullopt) {
  return Mesh(group,
              resolve({.strategy = strategy, .dp_shard = dp_shard}, equal_hosts(1, group.size())).shape);
}

}  // namespace stretto::parallel
