#include "stretto/strategy/mesh_shape.h"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

int size_of(const MeshShape& shape, Axis axis) {
  const std::array sizes = {shape.pp, shape.dp_replicate, shape.dp_shard, shape.cp, shape.tp};
  return sizes[static_cast<size_t>(axis)];
}

}  // namespace

int MeshShape::size(Axes axes) const {
  int product = 1;
  for (const Axis axis : all_axes) {
    if (axes.has(axis) && __builtin_mul_overflow(product, size_of(*this, axis), &product)) return INT_MAX;
  }
  return product;
}

std::string MeshShape::text() const {
  std::string text;
  for (const Axis axis : order)
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name_of(axis), size_of(*this, axis));
  return text;
}

void require_ranks(const MeshShape& shape, int ranks) {
  Axes ordered;
  for (const Axis axis : shape.order) ordered = ordered | axis;
  if (ordered != Axes::world) throw ConfigError("mesh: {}: the order must list each axis once", shape.text());
  for (const Axis axis : all_axes) {
    if (size_of(shape, axis) < 1)
      throw ConfigError("mesh: {}: every axis needs at least 1 rank", shape.text());
  }
  if (shape.ranks() == ranks) return;
  throw ConfigError("mesh: {} = {}, but the job has {}; change an axis or the number of ranks", shape.text(),
                    counted(shape.ranks(), "rank"), ranks);
}

std::vector<int> ranks_by_host(const std::vector<std::string>& hosts) {
  std::map<std::string, size_t> first_rank;
  for (size_t rank = 0; rank < hosts.size(); ++rank) first_rank.try_emplace(hosts[rank], rank);
  std::vector<int> row(hosts.size());
  std::iota(row.begin(), row.end(), 0);
  std::ranges::stable_sort(row, {},
                           [&](int rank) { return first_rank.at(hosts[static_cast<size_t>(rank)]); });
  return row;
}

std::vector<std::vector<int>> groups_along(const MeshShape& shape, Axes axes, const std::vector<int>& row) {
  std::map<int, std::vector<int>> groups;  // by the position of the first rank in the row
  for (size_t place = 0; place < row.size(); ++place) {
    int first = static_cast<int>(place), stride = 1;
    for (auto axis = shape.order.rbegin(); axis != shape.order.rend(); ++axis) {
      const int size = size_of(shape, *axis);
      if (axes.has(*axis)) first -= static_cast<int>(place) / stride % size * stride;
      stride *= size;
    }
    groups[first].push_back(row[place]);
  }
  std::vector<std::vector<int>> lists;
  for (auto& [first, ranks] : groups) lists.push_back(std::move(ranks));
  return lists;
}

bool spans_hosts(const MeshShape& shape, Axes axes, const std::vector<std::string>& hosts) {
  const auto host = [&](int rank) { return hosts[static_cast<size_t>(rank)]; };
  return std::ranges::any_of(groups_along(shape, axes, ranks_by_host(hosts)), [&](const auto& ranks) {
    return std::ranges::any_of(ranks, [&](int rank) { return host(rank) != host(ranks[0]); });
  });
}

}  // namespace stretto
