#include "stretto/tensor/state.h"

#include "stretto/base/error.h"
#include "stretto/base/tensor_layout.h"

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

Entry part_entry(std::string name, const TensorLayout& layout, int64_t first, const Tensor& data,
                 const Holders& holders) {
  Entry entry = {.name = std::move(name),
                 .dtype = data.scalar_type(),
                 .shape = layout.global,
                 .pieces = {},
                 .holders = holders};
  for (const LocalBox& box : layout.boxes(first, first + data.numel())) {
    entry.pieces.push_back(
        {box.region, data.as_strided(box.sizes, box.strides, data.storage_offset() + box.first - first)});
  }
  return entry;
}

}  // namespace stretto
