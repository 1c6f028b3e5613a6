#include "stretto/checkpoint/rank_file.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "stretto/base/file_writer.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/weights/safetensors_header.h"

namespace stretto::checkpoint {
namespace {

int64_t bytes_of(const Entry& entry) {
  int64_t bytes = 0;
  for (const Piece& piece : entry.pieces) bytes += static_cast<int64_t>(piece.data.nbytes());
  return bytes;
}

// For each entry the rank that writes it; meaningful for replicated ones. Replicated entries go to the rank that has the
// fewest bytes so far, the largest first.
std::vector<int> assign_writers(const std::vector<Entry>& entries, int world_size) {
  std::vector<size_t> by_size(entries.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, std::greater{}, [&](size_t index) { return bytes_of(entries[index]); });
  std::vector<int64_t> load(static_cast<size_t>(world_size), 0);
  std::vector<int> writer(entries.size(), 0);
  for (const size_t index : by_size) {
    if (!entries[index].replicated) continue;
    const auto least = std::ranges::min_element(load);
    *least += bytes_of(entries[index]);
    writer[index] = static_cast<int>(least - load.begin());
  }
  return writer;
}

std::string_view bytes_of(const Tensor& plain) {
  return {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()};
}

std::string make_header(const std::vector<OwnedPiece>& pieces) {
  std::vector<weights::SafetensorsTensor> tensors;
  int number = 0;
  for (const OwnedPiece& piece : pieces) {
    const bool whole = piece.region == whole_region(piece.shape);
    const std::vector<int64_t> flat = {piece.region.elements()};
    tensors.push_back({whole ? piece.entry : fmt::format("{}#{}", piece.entry, number++),
                       safetensors_dtype(piece.dtype), whole ? piece.shape : flat,
                       static_cast<int64_t>(piece.data.nbytes())});
  }
  return weights::safetensors_header(tensors);
}

}  // namespace

std::vector<OwnedPiece> owned_pieces(const State& state, int rank, int world_size) {
  const std::vector<int> writer = assign_writers(state.tensors, world_size);
  std::vector<OwnedPiece> pieces;
  for (size_t index = 0; index < state.tensors.size(); ++index) {
    const Entry& entry = state.tensors[index];
    if (entry.is_copy || (entry.replicated && writer[index] != rank)) continue;
    for (const Piece& piece : entry.pieces)
      pieces.push_back({entry.name, entry.dtype, entry.shape, piece.region, piece.data});
  }
  return pieces;
}

checkpoint_format::Manifest write_rank_file(const std::filesystem::path& path,
                                            const std::vector<OwnedPiece>& pieces) {
  const std::string header = make_header(pieces);
  checkpoint_format::Manifest part;
  const auto header_length = static_cast<int64_t>(header.size());
  FileWriter file(path);
  file.write(header);
  for (const OwnedPiece& piece : pieces) {
    const Tensor plain = piece.data.detach().to(at::kCPU).contiguous();
    const std::string_view bytes = bytes_of(plain);
    auto& entry = part.tensors[piece.entry];
    entry.dtype = safetensors_dtype(piece.dtype);
    entry.shape = piece.shape;
    entry.pieces.push_back(
        {piece.region, path.filename(), file.size(), static_cast<int64_t>(bytes.size()), hash64(bytes)});
    file.write(bytes);
  }
  file.finish();
  part.files[path.filename()] = {file.size(), header_length, hash64(header)};
  return part;
}

}  // namespace stretto::checkpoint
