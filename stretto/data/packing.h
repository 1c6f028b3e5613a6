#pragma once

#include <cstdint>
#include <span>

#include "stretto/tensor/batch.h"

namespace stretto::data {

// The tokens of one sample, or of a part of it that reads only itself.
struct TokenSequence {
  std::span<const int32_t> ids;
  std::span<const int32_t> types;  // as many
  int64_t sample = 0;              // its dataset index
};

// A packed batch without labels (see Batch), in the order given. Of sequences of one sample, such as
// documents in one block, each begins at position 0 and at the place after the last one's. Of no sequence: a
// batch without tensors, of count 0. Padding fills its tokens up to a multiple of `multiple_of`, so that
// shapes recur. REQUIRES: multiple_of > 0.
Batch pack_sequences(std::span<const TokenSequence> sequences, int64_t multiple_of = 1);

}  // namespace stretto::data
