#pragma once

#include <cstdint>
#include <span>

#include "stretto/tensor/batch.h"

namespace stretto::data {

// The tokens of one sample, or of a part of it that attends only to itself.
struct TokenSequence {
  std::span<const int32_t> ids;
  std::span<const int32_t> types;  // token types, as many as ids
  int64_t sample = 0;              // its dataset index
};

// Packs sequences into a batch without labels (see Batch), in the given order. Each sequence begins at
// position 0; sequences of one sample, such as documents in one block, have consecutive places. Without
// sequences, the batch has no tensors and count 0. Padding extends the tokens to a multiple of `multiple_of`,
// so that shapes recur. REQUIRES: multiple_of > 0.
Batch pack_sequences(std::span<const TokenSequence> sequences, int64_t multiple_of = 1);

}  // namespace stretto::data
