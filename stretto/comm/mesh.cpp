#include "stretto/comm/mesh.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/strategy/batch_plan.h"

namespace stretto {
namespace {

// The sets of axes that have a group, and its name in messages. The first of several sets with the same ranks
// gives the name.
struct Set {
  Axes axes;
  const char* name;
};
constexpr Set sets[] = {{Axis::tp, "tp"},
                        {Axis::cp, "cp"},
                        {Axis::dp_shard, "dp_shard"},
                        {Axis::dp_replicate, "dp_replicate"},
                        {Axis::pp, "pp"},
                        {Axes::shard, "shard"},
                        {Axis::dp_replicate | Axis::tp, "copies"},
                        {Axes::data, "data"},
                        {Axes::sum, "sum"},
                        {Axes::stage, "stage"},
                        {Axes::world, "mesh"}};

std::string names_in(Axes axes) {
  std::vector<std::string_view> names;
  for (const Axis axis : all_axes) {
    if (axes.has(axis)) names.push_back(name_of(axis));
  }
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

// `axes` without those that have one rank: equal for sets with the same ranks.
Axes effective(const MeshShape& shape, Axes axes) {
  Axes found;
  for (const Axis axis : all_axes) {
    if (axes.has(axis) && shape.size(axis) > 1) found = found | axis;
  }
  return found;
}

}  // namespace

Group& AxisRanks::group() const {
  if (!why_not_.empty()) throw ConfigError("{}", why_not_);
  return *group_;
}

Tensor AxisRanks::all_reduce(const Tensor& tensor, ReduceOp op) const {
  Tensor result = tensor.detach().to(group().device()).clone(at::MemoryFormat::Contiguous);
  group().all_reduce(result, op).wait();
  return result;
}

Tensor AxisRanks::all_gather(const Tensor& tensor) const {
  const Tensor own = tensor.detach().to(group().device()).contiguous();
  std::vector<int64_t> shape = own.sizes().vec();
  shape.insert(shape.begin(), size());
  Tensor all = at::empty(shape, own.options());
  group().all_gather(all, own).wait();
  return all;
}

Tensor AxisRanks::broadcast(const Tensor& tensor, int source) const {
  Tensor result = tensor.detach().to(group().device()).clone(at::MemoryFormat::Contiguous);
  group().broadcast(result, source).wait();
  return result;
}

Mesh::Mesh(Group& world, const MeshShape& shape, const BatchPlan& batch, bool divides_rows)
    : world_(world),
      shape_(shape),
      batch_(std::make_shared<const BatchPlan>(batch)),
      divides_rows_(divides_rows && shape.tp > 1) {
  require_ranks(shape, world.size());
  const std::vector<int> row = ranks_by_host(world.all_gather_bytes(world.host()));
  for (const Set& set : sets) {
    const auto same = [&](const Named& other) {
      return effective(shape, other.axes) == effective(shape, set.axes);
    };
    Group* group = nullptr;
    if (const auto found = std::ranges::find_if(groups_, same); found != groups_.end()) {
      group = found->group;
    } else if (shape.size(set.axes) == world.size() && std::ranges::is_sorted(row)) {
      group = &world;
    } else {
      for (const std::vector<int>& ranks : groups_along(shape, set.axes, row)) {
        if (auto made = world.subgroup(ranks, set.name)) group = owned_.emplace_back(std::move(made)).get();
      }
    }
    groups_.push_back({set.axes, group});
  }
}

Mesh::Mesh(Group& world, const MeshShape& shape) : Mesh(world, shape, BatchPlan(), false) {}

Group& Mesh::group(Axes axes) const {
  const auto found = std::ranges::find(groups_, axes, &Named::axes);
  if (found != groups_.end()) return *found->group;
  std::vector<std::string> possible;
  for (const Set& set : sets) possible.push_back(names_in(set.axes));
  throw ConfigError("mesh: there is no group of {}; possible: {}", names_in(axes), fmt::join(possible, ", "));
}

std::string Mesh::describe() const {
  return fmt::format("dp {} x tp {}: each layer is divided among {} ranks, which communicate by {}{}",
                     size(Axes::data), size(Axis::tp), size(Axis::tp), group(Axis::tp).transport(),
                     divides_rows_ ? "; rows between layers are divided, too" : "");
}

double Mesh::seconds_inside() const {
  double seconds = world_.seconds_inside();
  for (const auto& group : owned_) seconds += group->seconds_inside();
  return seconds;
}

}  // namespace stretto
