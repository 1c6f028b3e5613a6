#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/region.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

struct TensorLayout;

// A region of a global tensor and its values in row-major order, which may be strided in memory: a whole
// tensor, a flat shard, rows, or columns as in tensor parallelism.
struct Piece {
  Region region;
  Tensor data;
};

// The ranks that hold exactly the same pieces of an entry. They share the work of writing such entries, so
// that each is written once. REQUIRES: the tables of all these ranks contain the same entries of the set.
struct Holders {
  uint64_t set = 0;  // identifies the set: equal on all its ranks, different for other sets
  int ranks = 1;     // number of ranks
  int me = 0;        // the position of this rank in the set
  bool operator==(const Holders&) const = default;
};

// A named tensor of the state, and the pieces of it that this rank holds.
struct Entry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;  // of the global tensor
  std::vector<Piece> pieces;
  Holders holders = {};  // default: only this rank
};

// The state of a run as a table. Every component with state (engine, optimizer, schedule, cursor, ...) adds
// entries in its add_state() and restores them in its resume(). `tensors` refer to live memory, which saving
// reads and loading overwrites. `scalars` are copies: one JSON value per component.
struct State {
  std::vector<Entry> tensors;
  std::map<std::string, nlohmann::json> scalars;

  // The names of the tensors in the source that fills this table (StateSource). Unset: the table is being
  // saved.
  std::optional<std::set<std::string>> stored = std::nullopt;

  // The scalar `name`. Throws DataError if the checkpoint does not have it.
  const nlohmann::json& scalar(const std::string& name) const;
};

// The entry of a tensor that each of `holders` has whole. REQUIRES: data is contiguous, with as many elements
// as shape.
Entry whole_entry(std::string name, std::vector<int64_t> shape, Tensor data, const Holders& holders = {});

// The entry of a tensor of which each of `holders` has the row-major elements [first, first + data.numel())
// of the local tensor of `layout`; it has no pieces if data is empty. REQUIRES: data is contiguous.
Entry part_entry(std::string name, const TensorLayout& layout, int64_t first, const Tensor& data,
                 const Holders& holders = {});

}  // namespace stretto
