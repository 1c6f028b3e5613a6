#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/archive/manifest.h"
#include "stretto/tensor/state.h"

namespace stretto::checkpoint {

// A piece that this rank writes.
struct OwnedPiece {
  std::string entry;
  at::ScalarType dtype;
  std::vector<int64_t> shape;  // of the global tensor
  archive::Region region;
  Tensor data;
};

// What rank `rank` of `ranks` writes of a state: all it holds of sharded entries, and its share of the replicated ones,
// which are dealt out by size. Every rank comes to the same deal.
std::vector<OwnedPiece> owned_pieces(const State& state, int rank, int ranks);

// Writes a safetensors file of these pieces. A piece that is not a whole tensor is named "<entry>#<number>". Returns the
// part of the manifest that tells of them.
archive::Manifest write_rank_file(const std::filesystem::path& path, const std::vector<OwnedPiece>& pieces);

}  // namespace stretto::checkpoint
