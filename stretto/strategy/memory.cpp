#include "stretto/strategy/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace stretto {
namespace {

// The number of units whose gradients exist at a time under a strategy that shards them: two in reduction,
// the one in backward, and the next (reducer.h). The parameters of two units are gathered at a time: the one
// in use and the next.
constexpr int64_t gradient_units = 4, gathered_units = 2;

// Elements per rank in pages that are never written.
struct Unwritten {
  int64_t gradients = 0, state = 0;
};

// The rows without a gradient in tables that are stepped by rows. A shard is stepped as a whole; outside it,
// only the gradients of looked-up rows are written. With several copies, whole shards are summed
// (parallel/engine_parts.cpp).
Unwritten unwritten_of(const ModelSizes& sizes, const ShardGroup& group) {
  const int64_t idle = sizes.tables - sizes.reached;
  if (group.has_copies) return {};
  if (group.ranks > 1) return {.gradients = idle - largest_part(idle, group.ranks)};
  return sizes.steps_rows ? Unwritten{idle, idle} : Unwritten{};
}

}  // namespace

int64_t ModelSizes::elements() const { return std::reduce(units.begin(), units.end(), int64_t{0}); }

ElementBytes bytes_of(Precision precision) {
  return {.master = precision == Precision::fp64 ? 8 : 4, .compute = is_half(precision) ? 2 : 0};
}

ShardGroup shard_group(const Sharding& row, const JobShape& job) {
  if (row.optimizer == Held::replicated) return {};
  const int all = job.data_ranks(), here = job.data_ranks_per_host();
  const int ranks = !row.hybrid           ? all
                    : job.shard_ranks > 0 ? std::min(all, job.shard_ranks)
                                          : std::min(all, here);
  return {.ranks = ranks, .on_one_host = ranks <= here, .has_copies = ranks < all};
}

MemoryForecast forecast_memory(const ModelSizes& sizes, const Sharding& row, Precision precision,
                               const JobShape& job) {
  const ElementBytes bytes = bytes_of(precision);
  const ShardGroup group = shard_group(row, job);
  const int64_t elements = sizes.elements(), shard = largest_part(elements, group.ranks);
  const bool in_files = sizes.parameters_in_files && row.parameters == Held::sharded;
  const bool shared = group.on_one_host && group.ranks > 1 && job.shared_parameters && !in_files;
  const bool gathered = row.parameters == Held::sharded && group.ranks > 1 && !shared;
  const int64_t computed_with = shared || gathered ? shard : elements;
  const Unwritten unwritten = unwritten_of(sizes, group);
  const int64_t unwritten_state =
      unwritten.state == 0 ? 0 : unwritten.state * (sizes.optimizer_bytes / elements);
  const int64_t state = largest_part(sizes.optimizer_bytes, group.ranks) - unwritten_state;
  const int64_t master = bytes.master * (bytes.compute > 0 ? shard : computed_with),
                compute = bytes.compute * computed_with;
  MemoryForecast forecast;
  forecast.parameters = {
      .master = in_files ? 0 : master,
      .gradients = bytes.master * (row.gradients == Held::sharded ? shard : elements - unwritten.gradients),
      .compute = in_files ? 0 : compute,
      .optimizer = sizes.optimizer_in_files ? 0 : state,
      .optimizer_in_files = sizes.optimizer_in_files ? state : 0,
      .parameters_in_files = in_files ? master + compute : 0,
      .average = sizes.keeps_average ? bytes.master * shard : 0,
      .parameters_are_shared = shared};
  if (group.ranks == 1) return forecast;
  std::vector<int64_t> units = sizes.units;
  if (!units.empty() && !group.has_copies) units.front() = std::max<int64_t>(0, units.front() - sizes.tables);
  std::ranges::sort(units, std::greater<>());
  const auto largest = [&](int64_t count) {
    return std::reduce(units.begin(), units.begin() + std::min<int64_t>(count, std::ssize(units)),
                       int64_t{0});
  };
  // Each block has one owner among the ranks of a host, and the owner needs no buffer for it.
  const auto without_owner = [&](int64_t all) { return group.on_one_host ? all - all / group.ranks : all; };
  if (row.gradients == Held::sharded) forecast.step += bytes.master * without_owner(largest(gradient_units));
  if (gathered) {
    const int64_t released = std::max(largest(gathered_units), *std::ranges::max_element(sizes.units));
    forecast.step += (bytes.compute > 0 ? bytes.compute : bytes.master) *
                     (row.reshard_after_forward ? without_owner(released) : elements - shard);
  }
  return forecast;
}

}  // namespace stretto
