#include "stretto/data/character_rows.h"

namespace stretto::data {

void CharacterRows::add(std::span<const int32_t> ids, std::span<const int32_t> counts) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  for (const int32_t count : counts) bounds_.push_back(bounds_.back() + count);
}

void CharacterRows::add_to(Batch& batch) const {
  std::vector<int64_t> bounds = bounds_;
  bounds.resize(static_cast<size_t>(batch.at("input_ids").numel()) + 1, bounds_.back());
  batch.tensors["characters"] = at::tensor(ids_, at::kLong);
  batch.tensors["character_cu_seqlens"] = at::tensor(bounds, at::kLong);
}

}  // namespace stretto::data
