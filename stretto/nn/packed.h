#pragma once

#include "stretto/tensor/batch.h"

namespace stretto::nn {

// Where each token of a packed batch lies: made once a batch, used by every layer.
struct PackedLayout {
  Tensor cu_seqlens;       // [B + 1] int64: sequence b is rows cu_seqlens[b] .. cu_seqlens[b + 1]
  Tensor positions;        // [T] int64: position of each token in its sequence
  Tensor samples;          // [T] int64: dataset index of each token's sample
  Tensor slots;            // [T] int64: the token's row in the padded layout, b * max_length + position
  int64_t batch = 0;       // B
  int64_t tokens = 0;      // T
  int64_t max_length = 0;  // of the longest sequence

  // From the batch's cu_seqlens, positions and samples. Throws DataError when they contradict each other.
  explicit PackedLayout(const Batch& batch);

  Tensor first_rows() const {
    return cu_seqlens.slice(0, 0, batch);
  }  // [B]: row of each sequence's first token
  Tensor sample_of_sequence() const { return samples.index_select(0, first_rows()); }  // [B]
};

// What a forward pass knows besides its tensors. `key` is drawn from (seed, epoch); each dropout site mixes its own
// number in, so that the same sample meets the same masks on any rank, in any packing.
struct Context {
  bool training = false;
  uint64_t key = 0;
};

}  // namespace stretto::nn
