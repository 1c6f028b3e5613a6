#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stretto/strategy/batch_plan.h"
#include "stretto/strategy/mesh_shape.h"

namespace stretto {

// The user's settings that arrange the ranks of a job. Messages refer to them by `labels`.
struct TopologyRequest {
  std::string strategy = "ddp";  // a row of sharding.h
  // Ranks, or groups of tp ranks, per copy under a hybrid strategy; unset: those of each host.
  std::optional<int64_t> dp_shard = std::nullopt;
  int64_t tp = 1;                            // ranks among which each layer is divided
  std::optional<int64_t> dp = std::nullopt;  // ranks, or groups of tp ranks, that train on different samples
  BatchRequest batch = {};
  OptionLabels labels = {};
};

// The arrangement of the ranks of a job, and the division of the batch among them.
struct Topology {
  MeshShape shape;
  BatchPlan batch;
};

// The topology of a job whose rank r runs on hosts[r]: ranks with equal names can share memory. A strategy
// that shards nothing arranges its ranks on dp_replicate, one that shards on dp_shard, and a hybrid one on
// both. Launchers, planners and ranks that pass equal arguments get equal results. Throws ConfigError if tp
// or dp_shard does not divide the ranks, if dp_shard is needed because hosts differ in their number of ranks
// or tp does not divide it, and like resolve_batch().
Topology resolve(const TopologyRequest& request, const std::vector<std::string>& hosts);

// A warning about an arrangement that is slow on these hosts, as resolve() gets them; "": there is none.
std::string slow_topology(const Topology& topology, const std::vector<std::string>& hosts,
                          const OptionLabels& labels);

// Like above, on a mesh that the program has arranged itself; `dp_shard` is not used.
Topology resolve(const TopologyRequest& request, const MeshShape& shape);

// The hosts of a planned job: `count` hosts with `ranks` ranks each.
std::vector<std::string> equal_hosts(int count, int ranks);

}  // namespace stretto
