#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stretto {

// Whether each rank of the data-parallel group holds all of a buffer, or a part of its own.
enum class Held { replicated, sharded };

// A data-parallel strategy: which rank holds which part of the buffers behind the trainable parameters. The engine reads
// this table; no strategy has a step of its own.
struct Sharding {
  std::string name;
  // Optimizer state, and the master weights where the model computes with a copy of another dtype. Sharded: each rank
  // steps its part, and the parameters are gathered after the step.
  Held optimizer = Held::replicated;
};

// The row of a strategy. Throws ConfigError for a name that the table does not have.
const Sharding& find_sharding(const std::string& strategy);

// All rows, in the order of registration.
const std::vector<Sharding>& shardings();

// Adds a row, from a namespace-scope variable in the file of the strategy, before main(). Throws ConfigError for a name
// that is there already.
bool register_sharding(Sharding row);

// Elements [begin, end) of the arena.
struct Range {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
  Range operator&(const Range& other) const {
    const int64_t from = std::max(begin, other.begin);
    return {from, std::max(from, std::min(end, other.end))};
  }
};

}  // namespace stretto
