#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/region.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

struct TensorLayout;

// A region of a global tensor and its values in row-major order, which may have gaps in memory: a whole
// tensor, a flat shard, rows, or columns as in tensor parallelism.
struct Piece {
  Region region;
  Tensor data;
};

// The ranks that hold exactly the same pieces of an entry. They divide the entries that they all hold, so
// that each is written once: on each of them the table lists the same entries of this set.
struct Holders {
  uint64_t set = 0;  // which ranks: the same number on all of them, and another for other ranks
  int ranks = 1;     // how many
  int me = 0;        // this rank's position among them
  bool operator==(const Holders&) const = default;
};

// A named tensor of the state, and the pieces of it that this rank holds.
struct Entry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;  // of the global tensor
  std::vector<Piece> pieces;
  Holders holders = {};  // by default this rank alone
};

// The state of a run as a table. Every component with state (engine, optimizer, schedule, cursor, ...) adds
// it in its add_state() and restores it in its resume(). `tensors` refer to live memory, which saving reads
// and loading overwrites. `scalars` are copies: one JSON value per component.
struct State {
  std::vector<Entry> tensors;
  std::map<std::string, nlohmann::json> scalars;

  // The scalar `name`. Throws DataError if the checkpoint has none.
  const nlohmann::json& scalar(const std::string& name) const;
};

// The entry of a tensor that `holders` hold whole. REQUIRES: data is contiguous, with as many elements as
// shape.
Entry whole_entry(std::string name, std::vector<int64_t> shape, Tensor data, const Holders& holders = {});

// The entry of a tensor of which `holders` have a part by its layout, and of that hold the row-major elements
// [first, first + data.numel()); without elements it has no pieces. REQUIRES: data is contiguous.
Entry part_entry(std::string name, const TensorLayout& layout, int64_t first, const Tensor& data,
                 const Holders& holders = {});

}  // namespace stretto
