#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stretto/base/precision.h"
#include "stretto/strategy/sharding.h"

namespace stretto {

// The most that one of `parts` gets of `number` elements.
inline int64_t largest_part(int64_t number, int64_t parts) { return (number + parts - 1) / parts; }

// Memory of the trainable parameters, their gradients and their optimizer state, in bytes per rank.
struct EngineMemory {
  int64_t master = 0;
  int64_t gradients = 0;
  int64_t compute = 0;  // 0 if the model computes with the master weights
  int64_t optimizer = 0;
  int64_t optimizer_in_files = 0;   // not counted in total()
  int64_t parameters_in_files = 0;  // of master and compute, which are then 0
  int64_t average = 0;              // of the weights
  // Whether `compute` (or `master` if there is no `compute`) is this rank's part of one shared copy.
  bool parameters_are_shared = false;
  int64_t total() const { return master + gradients + compute + optimizer + average; }
};

// The sizes that determine the memory of a model's trainable parameters; of a rank's parts of them if layers
// are divided among ranks.
struct ModelSizes {
  std::vector<int64_t> units;   // the number of elements of each unit in the arena, in order
  int64_t tables = 0;           // elements of sparse tables among these, which are reduced by rows
  int64_t reached = 0;          // elements of the tables in pages with a row that gets a gradient in the run
  int64_t optimizer_bytes = 0;  // the optimizer's state for all of them
  bool steps_rows = false;      // the optimizer can step rows of tables separately
  bool optimizer_in_files = false;   // EngineOptions::offload_optimizer
  bool parameters_in_files = false;  // EngineOptions::offload_parameters
  bool can_shard = true;             // the optimizer supports sharded parameters
  bool keeps_average = false;        // EngineOptions::average
  int64_t elements() const;
};

// The ranks of a job.
struct JobShape {
  int ranks = 1;
  int ranks_per_host = 1;
  int shard_ranks = 0;            // data ranks that hold one copy under a hybrid strategy; 0: those of a host
  bool shared_parameters = true;  // EngineOptions::shared_parameters
  int tp = 1;                     // neighbouring ranks among which each layer is divided
  int64_t micro_batches = 1;      // per step and data rank
  int hosts() const { return (ranks + ranks_per_host - 1) / ranks_per_host; }
  // Ranks, or groups of tp ranks, that train on different samples.
  int data_ranks() const { return std::max(1, ranks / tp); }
  int data_ranks_per_host() const { return std::max(1, ranks_per_host / tp); }
};

// The ranks among which a strategy shards.
struct ShardGroup {
  int ranks = 1;
  bool on_one_host = true;  // they share memory
  bool has_copies = false;  // other ranks hold another copy of the sharded tensors
};
ShardGroup shard_group(const Sharding& row, const JobShape& job);

// Bytes of an element of the master weights, and of the copy that the model computes with; 0 if it computes
// with the master weights.
struct ElementBytes {
  int64_t master = 4, compute = 0;
};
ElementBytes bytes_of(Precision precision);

// Bytes per rank, predicted before a model is distributed over the ranks: the later value of
// EngineFacts::memory without the pages of tables that are never written, and the buffers that exist only
// during a step. If the ranks of one host need different amounts, because the owner of a block needs no
// buffer for it, this is their mean.
struct MemoryForecast {
  EngineMemory parameters;
  int64_t step = 0;  // gradients, and gathered parameters, of the largest blocks
  int64_t total() const { return parameters.total() + step; }
};
MemoryForecast forecast_memory(const ModelSizes& sizes, const Sharding& row, Precision precision,
                               const JobShape& job);

}  // namespace stretto
