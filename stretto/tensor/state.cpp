#include "stretto/tensor/state.h"

#include "stretto/base/error.h"

namespace stretto {

const nlohmann::json& State::scalar(const std::string& name) const {
  const auto found = scalars.find(name);
  if (found == scalars.end()) {
    throw DataError(
        "the checkpoint has no scalar \"{}\"; it was edited, or written by another program: resume from another checkpoint",
        name);
  }
  return found->second;
}

Entry whole_entry(std::string name, std::vector<int64_t> shape, Tensor data, const Holders& holders) {
  Region region = flat_region(shape, 0, data.numel());
  Entry entry = {.name = std::move(name),
                 .dtype = data.scalar_type(),
                 .shape = std::move(shape),
                 .pieces = {},
                 .holders = holders};
  entry.pieces.push_back({std::move(region), std::move(data)});
  return entry;
}

Entry flat_entry(std::string name, std::vector<int64_t> shape, int64_t first, Tensor data,
                 const Holders& holders) {
  const int64_t elements = data.numel();
  Entry entry = whole_entry(std::move(name), std::move(shape), std::move(data), holders);
  if (elements == 0) entry.pieces.clear();
  for (Piece& piece : entry.pieces) piece.region = flat_region(entry.shape, first, first + elements);
  return entry;
}

}  // namespace stretto
