#include "stretto/parallel/forecast.h"

#include <algorithm>

#include "stretto/parallel/arena.h"

namespace stretto::parallel {

// The optimizer is bound to memory whose pages are never touched.
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
                      .lr_factor = parameter.lr_factor,
                      .is_hidden_matrix = parameter.is_hidden_matrix});
  }
  const Allocator memory = plain_memory();
  const auto buffer = [&](at::ScalarType dtype) { return memory(end, dtype, at::kCPU); };
  const at::ScalarType master = master_dtype(precision), compute = compute_dtype(precision);
  optimizer.bind({buffer(master), buffer(master), compute == master ? Tensor() : buffer(compute)},
                 std::move(pieces), memory);
  sizes.reached = sizes.tables;
  sizes.optimizer_bytes = optimizer.state_bytes();
  sizes.steps_rows = optimizer.steps_rows();
  sizes.can_shard = optimizer.placement() != optim::Placement::whole_model;
  return sizes;
}

std::string StepForecast::bound() const {
  if (network >= compute && network >= memory) return "network";
  return memory > compute ? "memory" : "compute";
}

StepForecast forecast_step(const ModelSizes& sizes, const Sharding& row, Precision precision,
                           const JobShape& job, double compute, const HardwareRates& rates) {
  const ElementBytes bytes = bytes_of(precision);
  const ShardGroup group = shard_group(row, job);
  const int here = std::min(job.ranks, job.ranks_per_host),
            data_here = std::min(job.data_ranks(), job.data_ranks_per_host());
  // The ranks of a host with different samples, one group for each part of the layers.
  const double groups = static_cast<double>(here) / data_here;
  const auto elements = static_cast<double>(sizes.elements()),
             dense = elements - static_cast<double>(sizes.tables);
  const double gradients = dense * static_cast<double>(bytes.master);
  const bool shards = group.ranks > 1;
  StepForecast step;
  step.compute = compute * std::max(1.0, static_cast<double>(here) / rates.cores);
  // The optimizer reads and writes master weights, gradients and state; a copy of n bytes reads n and writes
  // n.
  const double stepped = (shards ? elements : dense) * (2.0 * static_cast<double>(bytes.master) +
                                                        static_cast<double>(bytes.compute) / 2) +
                         static_cast<double>(sizes.optimizer_bytes);
  const double optimizer = stepped * here / (shards ? static_cast<double>(group.ranks) : 1.0);
  // Each rank reads the gradients of all ranks and writes the sums, to its own shard or to every rank.
  const double reduced = data_here == 1 ? 0 : gradients * (data_here + (shards ? 1.0 : data_here)) / 2;
  step.memory = (optimizer + groups * reduced) / rates.memory;
  if (const int hosts = job.hosts(); hosts > 1) {
    const double ring = static_cast<double>(hosts - 1) / hosts;
    const double values = elements * static_cast<double>(bytes.compute > 0 ? bytes.compute : bytes.master);
    double sent = 2 * gradients;  // an all-reduce
    const bool twice = row.parameters == Held::sharded && row.reshard_after_forward;
    if (shards && !group.on_one_host) sent = gradients + (twice ? 2 : 1) * values;
    step.sent = ring * sent * groups;
    step.network = step.sent / rates.network;
  }
  return step;
}

}  // namespace stretto::parallel
