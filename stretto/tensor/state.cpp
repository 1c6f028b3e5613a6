#include "stretto/tensor/state.h"

namespace stretto {

Entry whole_entry(std::string name, std::vector<int64_t> shape, Tensor data) {
  Entry entry = {
      .name = std::move(name), .dtype = data.scalar_type(), .shape = std::move(shape), .pieces = {}};
  const int64_t elements = data.numel();
  entry.pieces.push_back(
      {std::vector<int64_t>(entry.shape.size(), 0), entry.shape, 0, elements, std::move(data)});
  return entry;
}

Entry flat_entry(std::string name, std::vector<int64_t> shape, int64_t first, Tensor data) {
  const int64_t elements = data.numel();
  Entry entry = whole_entry(std::move(name), std::move(shape), std::move(data));
  if (elements == 0) entry.pieces.clear();
  for (Piece& piece : entry.pieces) {
    piece.flat_begin = first;
    piece.flat_end = first + elements;
  }
  return entry;
}

}  // namespace stretto
