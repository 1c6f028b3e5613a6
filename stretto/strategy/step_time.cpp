#include "stretto/strategy/step_time.h"

#include <algorithm>

namespace stretto {

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
  // Gradients that are sharded are reduced, and parameters gathered, for every micro-batch.
  const double reductions = shards && row.gradients == Held::sharded ? job.micro_batches : 1,
               gathers = shards && row.parameters == Held::sharded ? job.micro_batches : 1;
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
  step.memory = (optimizer + groups * reductions * reduced) / rates.memory;
  // The hosts over which the ranks with different samples are spread.
  if (const int hosts = (job.data_ranks() + data_here - 1) / data_here; hosts > 1) {
    const double ring = static_cast<double>(hosts - 1) / hosts;
    const double values = elements * static_cast<double>(bytes.compute > 0 ? bytes.compute : bytes.master);
    double sent = 2 * gradients * reductions;  // an all-reduce
    const bool twice = row.parameters == Held::sharded && row.reshard_after_forward;
    if (shards && !group.on_one_host) sent = gradients * reductions + (twice ? 2 : 1) * values * gathers;
    step.sent = ring * sent * groups;
    step.network = step.sent / rates.network;
  }
  return step;
}

}  // namespace stretto
