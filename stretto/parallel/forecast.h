#pragma once

#include <string>
#include <vector>

#include "stretto/parallel/engine_facts.h"

namespace stretto {

// What the memory of a model's trainable parameters depends on.
struct ModelSizes {
  std::vector<int64_t> units;       // elements of each unit in the arena, in order
  int64_t tables = 0;               // elements of sparse tables among these, which are reduced by rows
  int64_t optimizer_bytes = 0;      // the optimizer's state for all of them
  bool optimizer_in_files = false;  // EngineOptions::offload_optimizer
  bool can_shard = true;            // the optimizer takes a part of the parameters
  int64_t elements() const;
};

// `optimizer` has not been bound.
ModelSizes sizes_of(const ModuleTensors& tensors, Precision precision, optim::Optimizer& optimizer);

// The ranks of a job.
struct JobShape {
  int ranks = 1;
  int ranks_per_host = 1;
  int hosts() const { return (ranks + ranks_per_host - 1) / ranks_per_host; }
};

// Bytes per rank before a model is distributed over the ranks: what Engine::memory() reports afterwards, and the buffers
// that exist during a step only. Ranks of one host share parameters (EngineOptions::shared_parameters).
struct MemoryForecast {
  EngineMemory parameters;
  int64_t step = 0;  // gradients, and gathered parameters, of the largest blocks
  int64_t total() const { return parameters.total() + step; }
};
MemoryForecast forecast_memory(const ModelSizes& sizes, const Sharding& row, Precision precision,
                               const JobShape& job);

// Rates of the hosts, in bytes per second.
struct HardwareRates {
  int cores = 1;            // per host
  double memory = 10e9;     // copied in memory by a host, all cores together
  double network = 1.25e9;  // sent by a host
};

// Seconds of one step.
struct StepForecast {
  double compute = 0;
  double memory = 0;   // optimizer and reductions within hosts, which memory bandwidth bounds
  double network = 0;  // what is sent between hosts
  double sent = 0;     // bytes, by each host to others
  double total() const { return compute + memory + network; }
  std::string bound() const;  // the largest part: "compute", "memory" or "network"
};
// `compute`: seconds of forward and backward of a step on a rank that has a core of its own. Nothing overlaps.
StepForecast forecast_step(const ModelSizes& sizes, const Sharding& row, Precision precision,
                           const JobShape& job, double compute, const HardwareRates& rates);

}  // namespace stretto
