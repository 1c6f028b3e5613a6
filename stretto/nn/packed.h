#pragma once

#include "stretto/tensor/batch.h"

namespace stretto::kernels {
struct Dropout;
}

namespace stretto::nn {

// The layout of a packed batch: computed once per batch, used by every layer.
struct PackedLayout {
  // [B + 1] int64: sequence b is rows cu_seqlens[b] .. cu_seqlens[b + 1]; later rows are padding.
  Tensor cu_seqlens;
  Tensor position_ids;  // [T] int64: position of each token in its sequence
  Tensor samples;       // [T] int64: dataset index of each token's sample
  Tensor places;        // [T] int64: index of each token's row in its sample, which selects its dropout mask
  Tensor sample_of_sequence;  // [B] int64
  Tensor first_places;        // [B] int64: the place of each sequence's position 0 (see places)
  int64_t batch = 0;          // B
  int64_t tokens = 0;         // T
  int64_t used = 0;           // rows of the sequences, without padding
  int64_t max_length = 0;     // length of the longest sequence
  bool are_last = false;      // the rows are the last rows of longer sequences

  // Reads the batch's cu_seqlens, position_ids, samples and places. Throws DataError if they are
  // inconsistent, or if places are missing although two sequences belong to one sample.
  explicit PackedLayout(const Batch& batch);

  // [B]: row of each sequence's first token.
  Tensor first_rows() const { return cu_seqlens.slice(0, 0, batch); }

  // [B]: row of each sequence's last token.
  Tensor last_rows() const { return cu_seqlens.slice(0, 1, batch + 1) - 1; }

  // The layout of the first or last tokens of the same sequences, as a classification head reads them.
  PackedLayout first_tokens() const;
  PackedLayout last_tokens() const;

  // The layout with rows of padding behind its own, up to a multiple of `multiple`.
  PackedLayout padded_to_multiple_of(int64_t multiple) const;

  // Whether `other` are the same rows, of which either may have been padded.
  bool has_rows_of(const PackedLayout& other) const { return cu_seqlens.is_same(other.cu_seqlens); }

 private:
  PackedLayout() = default;
};

// How layers on CPU compute: with stretto's kernels, or with ATen's operators as a reference.
enum class Kernels { fast, reference };
// The value named "fast" or "reference". Throws ConfigError for another name.
Kernels parse_kernels(const std::string& name);

class KeyValueCache;

// The arguments of a forward pass besides its tensors. `key` is derived from (seed, epoch) and combined with
// the number of each dropout site, so that a sample gets the same masks on any rank and in any packing.
struct Context {
  bool training = false;
  uint64_t key = 0;
  Kernels kernels = Kernels::fast;
  int64_t recompute_every = 0;  // activations of every n-th block are recomputed in backward; 0: none

  // With a cache, causal self-attention adds the keys and values of the batch's rows to those of earlier
  // passes and attends to all of them (nn/key_value_cache.h); null: it attends to those of the batch. Not for
  // training.
  KeyValueCache* cache = nullptr;

  bool recomputes(int64_t block) const { return recompute_every > 0 && block % recompute_every == 0; }

  // Whether stretto's kernels are used for x, which may have any shape.
  bool fast(const Tensor& x) const;

  // The dropout of site `site` with probability p; it does nothing unless training. Throws ConfigError unless
  // 0 <= p < 1.
  kernels::Dropout dropout(double p, uint64_t site) const;
};

}  // namespace stretto::nn
