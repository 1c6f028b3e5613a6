#include "stretto/strategy/topology.h"

#include <algorithm>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/strategy/sharding.h"

namespace stretto {
namespace {

// The ranks of each host, or its groups of tp ranks.
int64_t data_ranks_per_host(const TopologyRequest& request, const std::vector<std::string>& hosts) {
  std::map<std::string, int> ranks;
  for (const std::string& host : hosts) ++ranks[host];
  const auto& [first, count] = *ranks.begin();
  for (const auto& [host, other] : ranks) {
    if (other == count) continue;
    throw ConfigError(
        "{}strategy {} keeps one copy per host, but {} has {} and {} has {}; start as many on each, or set {}, the number of ranks per copy",
        request.labels.label("strategy"), request.strategy, first, counted(count, "rank"), host, other,
        request.labels.mention("dp_shard"));
  }
  if (count % request.tp != 0) {
    throw ConfigError(
        "{}strategy {} keeps one copy per host, but the {} ranks of a host are no multiple of tp ({}); set {}, the number of groups of tp ranks per copy",
        request.labels.label("strategy"), request.strategy, count, request.tp,
        request.labels.mention("dp_shard"));
  }
  return count / request.tp;
}

// The ranks, or groups of tp ranks, that train on different samples.
int data_ranks(const TopologyRequest& request, int ranks) {
  if (ranks % request.tp != 0) {
    throw ConfigError(
        "{}{} cannot be divided into groups of {}, the ranks of each layer; start a multiple of {} ranks (-N), or change {}",
        request.labels.label("mesh.tp"), counted(ranks, "rank"), request.tp, request.tp,
        request.labels.mention("mesh.tp"));
  }
  if (request.dp && *request.dp * request.tp != ranks) {
    throw ConfigError("{}dp ({}) x tp ({}) = {}, but the job has {}; change either number, or omit dp",
                      request.labels.label("mesh.dp"), *request.dp, request.tp,
                      counted(*request.dp * request.tp, "rank"), ranks);
  }
  return static_cast<int>(ranks / request.tp);
}

MeshShape shape_of(const TopologyRequest& request, const std::vector<std::string>& hosts) {
  const Sharding& row = find_sharding(request.strategy);
  const int tp = static_cast<int>(request.tp), ranks = data_ranks(request, static_cast<int>(hosts.size()));
  if (!shards_optimizer(row)) return {.dp_replicate = ranks, .tp = tp};
  if (!is_hybrid(row)) return {.dp_shard = ranks, .tp = tp};
  const int64_t shard = request.dp_shard ? *request.dp_shard : data_ranks_per_host(request, hosts);
  if (ranks % shard != 0) {
    throw ConfigError("{}{} cannot be divided into copies of {} each; change either number",
                      request.labels.label("dp_shard"), counted(ranks, "rank"), counted(shard, "rank"));
  }
  return {.dp_replicate = static_cast<int>(ranks / shard), .dp_shard = static_cast<int>(shard), .tp = tp};
}

}  // namespace

std::string slow_topology(const Topology& topology, const std::vector<std::string>& hosts,
                          const OptionLabels& labels) {
  if (!spans_hosts(topology.shape, Axis::tp, hosts)) return "";
  return fmt::format(
      "{}the {} ranks with parts of one layer are on different hosts, so that each layer sends the states of all tokens over the network, twice forward and twice backward; start a multiple of {} ranks on each host",
      labels.label("mesh.tp"), topology.shape.tp, topology.shape.tp);
}

Topology resolve(const TopologyRequest& request, const MeshShape& shape) {
  return {.shape = shape, .batch = resolve_batch(request.batch, shape.size(Axes::data), request.labels)};
}

Topology resolve(const TopologyRequest& request, const std::vector<std::string>& hosts) {
  return resolve(request, shape_of(request, hosts));
}

std::vector<std::string> equal_hosts(int count, int ranks) {
  std::vector<std::string> hosts;
  for (int host = 0; host < count; ++host)
    hosts.insert(hosts.end(), static_cast<size_t>(ranks), fmt::format("host {}", host));
  return hosts;
}

}  // namespace stretto
