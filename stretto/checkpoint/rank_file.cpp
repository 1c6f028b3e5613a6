#include "stretto/checkpoint/rank_file.h"

#include <algorithm>
#include <map>
#include <set>

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

// Returns the entries that this rank writes. The entries of each set of holders, in decreasing size, are
// assigned to the holder with the fewest bytes so far; all holders use the same order.
std::set<const Entry*> own_share(const std::vector<Entry>& entries) {
  std::vector<const Entry*> by_size;
  for (const Entry& entry : entries) by_size.push_back(&entry);
  std::ranges::sort(by_size, [](const Entry* a, const Entry* b) {
    const int64_t size_a = bytes_of(*a), size_b = bytes_of(*b);
    return size_a != size_b ? size_a > size_b : a->name < b->name;
  });
  std::map<uint64_t, std::vector<int64_t>> written;  // bytes, by set and holder
  std::set<const Entry*> share;
  for (const Entry* entry : by_size) {
    const auto [set, ranks, me] = entry->holders;
    std::vector<int64_t>& bytes = written[set];
    bytes.resize(static_cast<size_t>(ranks));
    const auto least = std::ranges::min_element(bytes);
    *least += bytes_of(*entry);
    if (least - bytes.begin() == me) share.insert(entry);
  }
  return share;
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

std::vector<OwnedPiece> owned_pieces(const State& state) {
  const std::set<const Entry*> own = own_share(state.tensors);
  std::vector<OwnedPiece> pieces;
  for (const Entry& entry : state.tensors) {
    if (!own.contains(&entry)) continue;
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
