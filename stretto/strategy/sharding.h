#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto {

// Whether each rank of the data-parallel group has a whole buffer or a shard of it.
enum class Held { replicated, sharded };

// A data-parallel strategy: which of the buffers of the trainable parameters are sharded. The engine reads
// this table; strategies have no code of their own.
struct Sharding {
  std::string name;
  // Optimizer state, and the master weights if the model computes with a copy of another dtype. Sharded: each
  // rank steps its shard of the parameters.
  Held optimizer = Held::replicated;
  // Sharded: a rank keeps the reduced gradients of its shard; other gradients take memory during backward
  // only.
  Held gradients = Held::replicated;
  // The weights that the model computes with. Sharded: one copy in memory that the ranks share, or else
  // gathered block by block.
  Held parameters = Held::replicated;
  // resolve() (topology.h) arranges the ranks on both dp_replicate and dp_shard, so that there are several
  // copies of the sharded buffers. Otherwise there is one copy, divided among all ranks.
  bool hybrid = false;
  // Gathered parameters are released after the forward of their block and gathered again for its backward.
  // False: they are kept until the backward.
  bool reshard_after_forward = true;
  // The part that a rank holds, for the help of a recipe: "also its part of the gradients".
  std::string help = {};
};

// Properties of a row.
inline bool shards_optimizer(const Sharding& row) { return row.optimizer == Held::sharded; }
inline bool shards_gradients(const Sharding& row) { return row.gradients == Held::sharded; }
inline bool shards_parameters(const Sharding& row) { return row.parameters == Held::sharded; }
inline bool is_hybrid(const Sharding& row) { return row.hybrid; }

// The row of a strategy. Throws ConfigError for an unknown name.
const Sharding& find_sharding(const std::string& strategy);

// All rows, in the order of registration.
const std::vector<Sharding>& shardings();

// The rows that have a property, for help and messages: "zero2, fsdp and hsdp".
std::string strategies_with(bool (*property)(const Sharding&), std::string_view conjunction = "and");

// Adds a row, which recipes can use afterwards. Throws ConfigError for a name that is taken. Not thread-safe:
// call it at the start of a program, or before main() in the initialiser of a namespace-scope variable, for
// which it returns true.
bool register_sharding(Sharding row);

}  // namespace stretto
