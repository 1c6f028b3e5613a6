#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stretto/optim/optimizer.h"
#include "stretto/parallel/parameters.h"
#include "stretto/strategy/memory.h"
#include "stretto/strategy/sharding.h"

namespace stretto::parallel {

// The properties of an engine, which do not change after its construction.
struct EngineFacts {
  ModuleTensors tensors;
  Sharding sharding;
  Precision precision = Precision::fp32;
  int shards = 1;                      // the number of ranks among which the optimizer's state is divided
  bool gradients_are_sharded = false;  // no rank has the gradients of all parameters
  // Parameters are gathered block by block, so each forward is collective too, and every rank must run it
  // equally often.
  bool passes_are_collective = false;
  bool keeps_average = false;
  bool is_divided = false;  // parameters are divided among the ranks of Axis::tp
  int64_t trainable_elements = 0;
  int64_t elements = 0;                 // with padding, which aligns each parameter to a cache line
  std::vector<std::string> units = {};  // blocks whose parameters are gathered together; "": outside blocks
  size_t buckets = 0;                   // gradient buckets
  size_t sparse_tables = 0;             // tables that are reduced by rows
  std::string optimizer = {};           // its name; "" without one
  optim::StepRates base_rates = {};     // of the optimizer
  bool reevaluates = false;             // optim::Optimizer::reevaluates()
  // the folders with the optimizer's state and the parameters; "" if they are in memory
  std::filesystem::path optimizer_folder = {}, parameter_folder = {};
  int copies = 1;  // of the parameters in the job, each sharded over other ranks
  EngineMemory memory = {};
};

// The lines printed at setup: sizes, dtypes, memory. `title` begins the first ("model"); `compute` names the
// compute dtype.
std::string describe(const EngineFacts& facts, const std::string& title, const std::string& compute);

}  // namespace stretto::parallel
