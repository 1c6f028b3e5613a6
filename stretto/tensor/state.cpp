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

}  // namespace stretto
