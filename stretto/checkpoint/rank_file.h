#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/checkpoint_format/manifest.h"
#include "stretto/tensor/state.h"

namespace stretto::checkpoint {

// A piece that this rank writes.
struct OwnedPiece {
  std::string entry;
  at::ScalarType dtype;
  std::vector<int64_t> shape;  // of the global tensor
  Region region;
  Tensor data;
};

// The pieces of a state that this rank writes: its share of its entries, which the holders of each set
// (Entry::holders) divide by size. The tables of the holders contain the same entries of the set, in any
// order, so that all of them compute the same division.
std::vector<OwnedPiece> owned_pieces(const State& state);

// Writes a safetensors file of these pieces. A piece that is not a whole tensor is named "<entry>#<number>".
// Returns the part of the manifest that describes them.
checkpoint_format::Manifest write_rank_file(const std::filesystem::path& path,
                                            const std::vector<OwnedPiece>& pieces);

}  // namespace stretto::checkpoint
