#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/tensor/batch.h"

namespace stretto::data {

// The characters of the tokens of a packed batch, for models that read them beside token ids.
class CharacterRows {
 public:
  // Of further tokens: counts[i] of the ids (text::Characters) belong to the i-th of them. REQUIRES: the counts sum up to the ids.
  void add(std::span<const int32_t> ids, std::span<const int32_t> counts);

  // Adds characters [C] and character_cu_seqlens [T + 1], int64: those of token t are rows character_cu_seqlens[t] to [t + 1]. The
  // batch's padding has none. REQUIRES: as many counts as the sequences of the batch have tokens.
  void add_to(Batch& batch) const;

 private:
  std::vector<int64_t> ids_, bounds_ = {0};
};

}  // namespace stretto::data
