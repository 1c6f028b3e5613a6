#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/tensor/tensor.h"

namespace stretto {

// Row-major elements [flat_begin, flat_end) of the box at `offset` with `extent` inside a global tensor, in `data`
// (contiguous, as many elements). Enough for whole tensors, flat shards, rows and tensor-parallel columns.
struct Piece {
  std::vector<int64_t> offset;
  std::vector<int64_t> extent;
  int64_t flat_begin = 0;
  int64_t flat_end = 0;
  Tensor data;
};

// A named tensor that must survive, and what this rank holds of it.
struct Entry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;  // of the global tensor
  std::vector<Piece> pieces;
  bool replicated = true;  // every rank holds these same pieces, so that one of them may write them
};

// All that a run must remember, as a table. Those who have state add it (arena, optimizer, sampler, ...); `tensors` refer
// to their living memory, so that saving reads it and loading writes it. `scalars` are copies, one JSON value a
// describer; after loading, each reads back its own.
struct State {
  std::vector<Entry> tensors;
  std::map<std::string, nlohmann::json> scalars;
};

// The entry of a tensor that every rank holds whole. REQUIRES: data is contiguous, with as many elements as shape.
Entry whole_entry(std::string name, std::vector<int64_t> shape, Tensor data);

// The entry of a tensor of which this rank holds the row-major elements from `first` on, as many as `data` has (none: it
// holds no piece).
Entry flat_entry(std::string name, std::vector<int64_t> shape, int64_t first, Tensor data);

}  // namespace stretto
