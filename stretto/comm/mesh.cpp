#include "stretto/comm/mesh.h"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>

#include "stretto/base/error.h"

namespace stretto {
namespace {

void require_ranks(const MeshShape& shape, int world_size) {
  for (const int size : {shape.pp, shape.dp_replicate, shape.dp_shard, shape.tp}) {
    if (size < 1) throw ConfigError("mesh: {}: every dimension needs at least 1 rank", shape.text());
  }
  if (shape.ranks() == world_size) return;
  throw ConfigError("mesh: {} = {} ranks, but the job has {}; change a dimension or the number of ranks",
                    shape.text(), shape.ranks(), world_size);
}

// Ranks of one host next to each other, hosts in the order of their first rank.
std::vector<int> order_by_host(const std::vector<std::string>& hosts) {
  std::map<std::string, size_t> first_rank;
  for (size_t rank = 0; rank < hosts.size(); ++rank) first_rank.try_emplace(hosts[rank], rank);
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return first_rank.at(hosts[static_cast<size_t>(a)]) < first_rank.at(hosts[static_cast<size_t>(b)]);
  });
  return order;
}

}  // namespace

int MeshShape::ranks() const {
  int product = 1;
  for (const int size : {pp, dp_replicate, dp_shard, tp}) {
    if (__builtin_mul_overflow(product, size, &product)) return INT_MAX;
  }
  return product;
}

std::string MeshShape::text() const {
  return fmt::format("pp {} x dp_replicate {} x dp_shard {} x tp {}", pp, dp_replicate, dp_shard, tp);
}

Mesh::Mesh(Group& world, const MeshShape& shape) : world_(world), shape_(shape) {
  require_ranks(shape, world.size());
  const std::vector<int> order = order_by_host(world.all_gather_bytes(world.host()));
  const int dp = shape.dp_replicate * shape.dp_shard;
  add("tp", order, 1, shape.tp);
  add("dp_shard", order, shape.tp, shape.dp_shard);
  add("dp_replicate", order, shape.tp * shape.dp_shard, shape.dp_replicate);
  add("dp", order, shape.tp, dp);
  add("pp", order, shape.tp * dp, shape.pp);
}

// The groups along a dimension: positions in `order` that are `stride` apart. All ranks make all of them, in one order.
void Mesh::add(const char* name, const std::vector<int>& order, int stride, int extent) {
  const auto same = [&](const Named& other) {
    return other.extent == extent && (other.stride == stride || extent == 1);
  };
  const auto found = std::find_if(groups_.begin(), groups_.end(), same);
  if (found != groups_.end()) {
    Group* const group = found->group;
    groups_.push_back({name, stride, extent, group, nullptr});
    return;
  }
  if (extent == world_.size() && std::is_sorted(order.begin(), order.end())) {
    groups_.push_back({name, stride, extent, &world_, nullptr});
    return;
  }
  std::unique_ptr<Group> mine;
  for (int first = 0; first < world_.size(); ++first) {
    if (first / stride % extent != 0) continue;
    std::vector<int> ranks;
    for (int i = 0; i < extent; ++i) ranks.push_back(order[static_cast<size_t>(first + i * stride)]);
    if (auto group = world_.subgroup(ranks, name)) mine = std::move(group);
  }
  Group* const group = mine.get();
  groups_.push_back({name, stride, extent, group, std::move(mine)});
}

Group& Mesh::group(std::string_view name) const {
  for (const Named& named : groups_) {
    if (named.name == name) return *named.group;
  }
  throw ConfigError("mesh: \"{}\" is not a group; possible: pp, dp_replicate, dp_shard, tp, dp", name);
}

}  // namespace stretto
