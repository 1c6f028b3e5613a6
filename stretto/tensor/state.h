#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/region.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

// A region of a global tensor, in `data` (contiguous, as many elements). Enough for whole tensors, flat shards, rows and
// tensor-parallel columns.
struct Piece {
  Region region;
  Tensor data;
};

// A named tensor that must survive, and what this rank holds of it.
struct Entry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;  // of the global tensor
  std::vector<Piece> pieces;
  bool replicated =
      true;  // every rank holds these same pieces, and one of them writes them; else each has its own
};

// All that a run must remember, as a table. Every part that has state (arena, optimizer, schedule, cursor, ...) describes it
// in its own add_state() and reads it back in its own resume(). `tensors` refer to the memory in use, which saving reads
// and loading overwrites. `scalars` are copies: one JSON value per part.
struct State {
  std::vector<Entry> tensors;
  std::map<std::string, nlohmann::json> scalars;

  // The scalar `name`. Throws DataError where the checkpoint has none.
  const nlohmann::json& scalar(const std::string& name) const;
};

// The entry of a tensor that every rank holds whole. REQUIRES: data is contiguous, with as many elements as shape.
Entry whole_entry(std::string name, std::vector<int64_t> shape, Tensor data);

// The entry of a tensor of which this rank holds the row-major elements from `first` on, as many as `data` has (none: it
// holds no piece).
Entry flat_entry(std::string name, std::vector<int64_t> shape, int64_t first, Tensor data);

}  // namespace stretto
