#include "stretto/checkpoint_format/tensor_reader.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/stream_hash.h"
#include "stretto/checkpoint_format/region_copy.h"

namespace stretto::checkpoint_format {
namespace {

constexpr int64_t part_bytes = int64_t{4} << 20;

// The number of elements of the box of `region` that lie before the row-major element `flat` of a tensor of
// this shape. Within a box, elements have the order that they have in the tensor.
int64_t elements_before(const Region& region, const std::vector<int64_t>& shape, int64_t flat) {
  if (shape.empty()) return std::min<int64_t>(flat, 1);
  int64_t count = 0, box = 1, stride = 1;
  for (const int64_t extent : region.extent) box *= extent;
  for (const int64_t extent : shape) stride *= extent;
  if (box == 0) return 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    box /= region.extent[axis];
    stride /= shape[axis];
    const int64_t index =
        flat / stride - region.offset[axis];  // below 0: before the box; beyond its extent: after
    flat %= stride;
    count += std::clamp<int64_t>(index, 0, region.extent[axis]) * box;
    if (index < 0 || index >= region.extent[axis]) return count;
  }
  return count;
}

}  // namespace

// The elements of a piece are read in order, each once, since windows and boxes have the same order.
struct TensorReader::PieceProgress {
  const StoredPiece* piece;
  int64_t read;  // the next element, as an index in the piece's box
  StreamHash hash;
};

TensorReader::TensorReader(std::filesystem::path checkpoint, const Manifest& manifest)
    : checkpoint_(std::move(checkpoint)), manifest_(manifest) {}

const InputFile& TensorReader::file(const std::string& name) {
  const auto found = files_.find(name);
  return found != files_.end() ? found->second
                               : files_.emplace(name, InputFile(checkpoint_ / name)).first->second;
}

// Copies the piece's elements that lie in the window.
void TensorReader::fill(const StoredEntry& entry, PieceProgress& progress, const Region& window,
                        std::span<char> bytes) {
  const StoredPiece& piece = *progress.piece;
  const int64_t element = element_bytes(entry.dtype);
  Region part = piece.region;
  part.flat_begin = progress.read;
  part.flat_end = std::clamp(elements_before(piece.region, entry.shape, window.flat_end), progress.read,
                             piece.region.flat_end);
  if (part.elements() == 0) return;
  stored_.resize(static_cast<size_t>(part.elements() * element));
  file(piece.file).read(piece.begin + (part.flat_begin - piece.region.flat_begin) * element, stored_);
  progress.hash.add({stored_.data(), stored_.size()});
  progress.read = part.flat_end;
  copy_common(part, reinterpret_cast<const std::byte*>(stored_.data()), window,
              reinterpret_cast<std::byte*>(bytes.data()), element);
}

void TensorReader::read(const std::string& tensor, const std::function<void(std::string_view)>& use) {
  const StoredEntry& entry = manifest_.tensors.at(tensor);
  const int64_t element = element_bytes(entry.dtype), elements = count_elements(entry.shape);
  std::vector<PieceProgress> pieces;
  for (const StoredPiece& piece : entry.pieces) pieces.push_back({&piece, piece.region.flat_begin, {}});
  for (int64_t begin = 0; begin < elements;) {
    const int64_t end = std::min(elements, begin + part_bytes / element);
    part_.resize(static_cast<size_t>((end - begin) * element));
    const Region window = flat_region(entry.shape, begin, end);
    for (PieceProgress& piece : pieces) fill(entry, piece, window, part_);
    use({part_.data(), part_.size()});
    begin = end;
  }
  for (const PieceProgress& progress : pieces) {
    const StoredPiece& piece = *progress.piece;
    if (progress.hash.value() == piece.checksum) continue;
    throw DataError("{}: tensor {} is damaged (bytes {} to {} differ from their checksum)",
                    (checkpoint_ / piece.file).string(), tensor, piece.begin, piece.begin + piece.length);
  }
}

}  // namespace stretto::checkpoint_format
