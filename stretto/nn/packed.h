#pragma once

#include "stretto/kernels/attention.h"
#include "stretto/tensor/batch.h"

namespace stretto::nn {

// Where each token of a packed batch lies: made once a batch, used by every layer.
struct PackedLayout {
  Tensor cu_seqlens;          // [B + 1] int64: sequence b is rows cu_seqlens[b] .. cu_seqlens[b + 1]
  Tensor position_ids;        // [T] int64: position of each token in its sequence
  Tensor samples;             // [T] int64: dataset index of each token's sample
  Tensor sample_of_sequence;  // [B] int64
  int64_t batch = 0;          // B
  int64_t tokens = 0;         // T
  int64_t max_length = 0;     // of the longest sequence

  // From the batch's cu_seqlens, position_ids and samples. Throws DataError when they contradict each other.
  explicit PackedLayout(const Batch& batch);

  // [B]: row of each sequence's first token.
  Tensor first_rows() const { return cu_seqlens.slice(0, 0, batch); }

  // The same sequences, of which only the first tokens are there: what a head on them reads.
  PackedLayout first_tokens() const;

 private:
  PackedLayout() = default;
};

// How layers on CPU compute: by kernels of our own, or by ATen's operators, to compare them.
enum class Kernels { fast, reference };
Kernels parse_kernels(const std::string& name);  // "fast" or "reference"

// What a forward pass knows besides its tensors. `key` is drawn from (seed, epoch); each dropout site mixes its own
// number in, so that the same sample meets the same masks on any rank, in any packing.
struct Context {
  bool training = false;
  uint64_t key = 0;
  Kernels kernels = Kernels::fast;

  // Whether x is computed on by kernels of our own.
  bool fast(const Tensor& x) const;

  // How site `site` drops with probability p.
  kernels::Dropout dropout(double p, uint64_t site) const;
};

}  // namespace stretto::nn
