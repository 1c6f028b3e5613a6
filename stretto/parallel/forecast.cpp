#include "stretto/parallel/forecast.h"

#include <algorithm>
#include <numeric>

namespace stretto {
namespace {

// Units whose gradients exist at a time under a strategy that shards them: two in reduction, the one that backward is in,
// and the next (reducer.h). Of gathered parameters: the one in use and the next.
constexpr int64_t gradient_units = 4, gathered_units = 2;

struct ElementBytes {
  int64_t master, compute;  // compute 0: the model computes with the master weights
};

ElementBytes bytes_of(Precision precision) {
  const auto master = static_cast<int64_t>(c10::elementSize(master_dtype(precision)));
  const bool copy = compute_dtype(precision) != master_dtype(precision);
  return {master, copy ? static_cast<int64_t>(c10::elementSize(compute_dtype(precision))) : 0};
}

// Over how many ranks a strategy shards, and whether these share memory.
struct ShardGroup {
  int64_t ranks;
  bool on_one_host;
};

ShardGroup shard_group(const Sharding& row, const JobShape& job) {
  if (row.optimizer == Held::replicated) return {1, true};
  if (row.hybrid) return {std::min(job.ranks, job.ranks_per_host), true};
  return {job.ranks, job.hosts() == 1};
}

int64_t divided(int64_t bytes, int64_t ranks) { return (bytes + ranks - 1) / ranks; }

}  // namespace

int64_t ModelSizes::elements() const { return std::reduce(units.begin(), units.end(), int64_t{0}); }

// The optimizer is bound to pages that are never touched.
ModelSizes sizes_of(const ModuleTensors& tensors, Precision precision, optim::Optimizer& optimizer) {
  ModelSizes sizes;
  std::vector<optim::ParameterPiece> pieces;
  int64_t end = 0;
  std::string unit;
  for (const NamedParameter& parameter : tensors.trainable) {
    if (parameter.sparse && parameter.tensor.device().is_cpu()) sizes.tables += parameter.tensor.numel();
    const int64_t begin = end, size = parameter.tensor.numel();
    end += Arena::padded(parameter.layout.slot());
    if (sizes.units.empty() || parameter.unit != unit) sizes.units.push_back(0);
    unit = parameter.unit;
    sizes.units.back() += end - begin;
    pieces.push_back({.name = parameter.name,
                      .layout = parameter.layout,
                      .begin = begin,
                      .end = begin + size,
                      .weight_decay = parameter.weight_decay,
                      .lr_factor = parameter.lr_factor});
  }
  const Allocator memory = plain_memory();
  const auto buffer = [&](at::ScalarType dtype) { return memory(end, dtype, at::kCPU); };
  const at::ScalarType master = master_dtype(precision), compute = compute_dtype(precision);
  optimizer.bind({buffer(master), buffer(master), compute == master ? Tensor() : buffer(compute)},
                 std::move(pieces), memory);
  sizes.optimizer_bytes = optimizer.state_bytes();
  sizes.can_shard = optimizer.placement() != optim::Placement::whole_model;
  return sizes;
}

MemoryForecast forecast_memory(const ModelSizes& sizes, const Sharding& row, Precision precision,
                               const JobShape& job) {
  const ElementBytes bytes = bytes_of(precision);
  const ShardGroup group = shard_group(row, job);
  const int64_t elements = sizes.elements(), shard = divided(elements, group.ranks);
  const bool shared = group.on_one_host && group.ranks > 1;
  const bool gathered = row.parameters == Held::sharded && group.ranks > 1 && !shared;
  const int64_t computed_with = shared || gathered ? shard : elements;
  const int64_t state = divided(sizes.optimizer_bytes, group.ranks);
  MemoryForecast forecast;
  forecast.parameters = {.master = bytes.master * (bytes.compute > 0 ? shard : computed_with),
                         .gradients = bytes.master * (row.gradients == Held::sharded ? shard : elements),
                         .compute = bytes.compute * computed_with,
                         .optimizer = sizes.optimizer_in_files ? 0 : state,
                         .optimizer_in_files = sizes.optimizer_in_files ? state : 0,
                         .parameters_are_shared = shared};
  if (group.ranks == 1) return forecast;
  std::vector<int64_t> units = sizes.units;
  if (!units.empty()) units.front() = std::max<int64_t>(0, units.front() - sizes.tables);
  std::ranges::sort(units, std::greater<>());
  const auto largest = [&](int64_t count) {
    return std::reduce(units.begin(), units.begin() + std::min<int64_t>(count, std::ssize(units)),
                       int64_t{0});
  };
  if (row.gradients == Held::sharded) forecast.step += bytes.master * largest(gradient_units);
  if (gathered) {
    const int64_t released = std::max(largest(gathered_units), *std::ranges::max_element(sizes.units));
    forecast.step += (bytes.compute > 0 ? bytes.compute : bytes.master) *
                     (row.reshard_after_forward ? released : elements - shard);
  }
  return forecast;
}

std::string StepForecast::bound() const {
  if (network >= compute && network >= memory) return "network";
  return memory > compute ? "memory" : "compute";
}

StepForecast forecast_step(const ModelSizes& sizes, const Sharding& row, Precision precision,
                           const JobShape& job, double compute, const HardwareRates& rates) {
  const ElementBytes bytes = bytes_of(precision);
  const ShardGroup group = shard_group(row, job);
  const int here = std::min(job.ranks, job.ranks_per_host);
  const auto elements = static_cast<double>(sizes.elements()),
             dense = elements - static_cast<double>(sizes.tables);
  const double gradients = dense * static_cast<double>(bytes.master);
  const bool shards = group.ranks > 1;
  StepForecast step;
  step.compute = compute * std::max(1.0, static_cast<double>(here) / rates.cores);
  // The optimizer reads and writes master weights, gradients and state; a copy of n bytes reads n and writes n.
  const double stepped = (shards ? elements : dense) * (2.0 * static_cast<double>(bytes.master) +
                                                        static_cast<double>(bytes.compute) / 2) +
                         static_cast<double>(sizes.optimizer_bytes);
  const double optimizer = stepped * here / (shards ? static_cast<double>(group.ranks) : 1.0);
  // Each rank reads the gradients of all and writes the sums: to its own shard, or to every rank.
  const double reduced = here == 1 ? 0 : gradients * (here + (shards ? 1.0 : here)) / 2;
  step.memory = (optimizer + reduced) / rates.memory;
  if (const int hosts = job.hosts(); hosts > 1) {
    const double ring = static_cast<double>(hosts - 1) / hosts;
    const double values = elements * static_cast<double>(bytes.compute > 0 ? bytes.compute : bytes.master);
    double sent = 2 * gradients;  // an all-reduce
    const bool twice = row.parameters == Held::sharded && row.reshard_after_forward;
    if (shards && !group.on_one_host) sent = gradients + (twice ? 2 : 1) * values;
    step.sent = ring * sent;
    step.network = step.sent / rates.network;
  }
  return step;
}

}  // namespace stretto
