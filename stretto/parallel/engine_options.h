#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/base/precision.h"
#include "stretto/parallel/average.h"
#include "stretto/parallel/parameter_group.h"

namespace stretto::parallel {

struct EngineOptions {
  std::string strategy = "ddp";  // a row of sharding.h
  Precision precision = Precision::fp32;
  double bucket_bytes = 25 * 1024 * 1024;  // largest gradient bucket
  // If the optimizer's state is sharded: a reduction gives each rank only the gradients of its shard, and
  // zeros elsewhere. If false, strategies that replicate gradients give all of them to every rank.
  bool gradients_to_owners = true;
  // If the optimizer's state is sharded and the ranks share memory: they compute with one shared copy of the
  // parameters. A write to a parameter by any rank is then a write for all ranks.
  bool shared_parameters = true;
  std::vector<ParameterGroup> groups = {};  // settings of parameters by name pattern
  // The gradients of sparse embedding tables are reduced row by row, and the rows are stepped separately if
  // strategy and optimizer support it. If false, weights are up to date after every step, without catch_up().
  // An optimizer that keeps_idle_rows() steps rows in any case.
  bool lazy_rows = true;
  // > 0: the number of micro-batches per step over all ranks; each has those of part_range(), after as many
  // passes without samples as make the numbers of all ranks equal. Their gradients are then summed in an
  // order that depends only on this number. Until they are, each rank has whole gradients, under any
  // strategy.
  int64_t fixed_order = 0;
  // Keeps an exponential moving average of the weights, sharded like the master weights. Requires an
  // optimizer.
  std::optional<AverageOptions> average = {};
  // If parameters are gathered: Sharding::reshard_after_forward.
  bool reshard_after_forward = true;
  int64_t min_unit_elements = 0;  // blocks with fewer parameters are not units (collect_tensors)
  // A folder: the optimizer's state is in files there (tensor/file_memory.h). A step of an elementwise rule
  // reads and writes so many of its elements at a time; others have all of it in memory during the step. "":
  // in memory.
  std::filesystem::path offload_optimizer = {};
  // A folder: under strategies that shard the parameters, these are in files there, and blocks have them in
  // memory while they compute. They are then not shared. "": in memory.
  std::filesystem::path offload_parameters = {};
  int64_t offloaded_at_once = int64_t{1} << 22;
  OptionNames names = {};
};

}  // namespace stretto::parallel
