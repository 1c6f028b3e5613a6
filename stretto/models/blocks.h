#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stretto/base/error.h"
#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto {

// The number of a head's dropout site; those of the model's layers are counted from 0.
inline constexpr uint64_t head_dropout_site = ~uint64_t{0};

// The parts of a post-norm transformer layer (Vaswani et al. 2017). Each registers its parameters in the
// layer that it belongs to, under the names of the model's weight files.

struct AttentionNames {
  std::string query, key, value, output, norm;
};

struct AttentionOptions {
  int64_t width = 0, heads = 0;
  double norm_eps = 1e-12;
  double dropout = 0;             // of the output
  double attention_dropout = 0;   // of the attention weights
  uint64_t first_site = 0;        // number of its first dropout site; it has two
  bool causal = false;            // a token attends to itself and earlier tokens only
  nn::TensorParallel ranks = {};  // among which heads are divided
};

// norm(x + dropout(output(attention(query(x), key(source), value(source))))). If the ranks divide rows, x and
// the result are rows of this rank, and layouts those of all (RowsBetweenBlocks).
class AttentionBlock {
 public:
  // Throws like require_divisible_heads().
  AttentionBlock(torch::nn::Module& layer, const AttentionNames& names, const AttentionOptions& options);

  // Self-attention: maps x [T, H], the rows of `layout`, to the rows of `wanted`, [., H]: `layout`, or its
  // first_tokens() or last_tokens(), which skips most of the computation.
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                 const nn::Context& context) const;

  // Attention to other rows of the same sequences. x [., H]: the rows of `wanted`, as above; source [T, H]:
  // those of `layout`. Returns the rows of `wanted`. If the ranks divide rows, all three are rows of this
  // rank.
  Tensor forward_to(const Tensor& source, const Tensor& x, const nn::PackedLayout& layout,
                    const nn::PackedLayout& wanted, const nn::Context& context) const;

 private:
  Tensor forward_to_own(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                        const nn::Context& context) const;
  Tensor finish(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& x,
                const nn::PackedLayout& layout, const nn::PackedLayout& wanted,
                const nn::Context& context) const;

  AttentionOptions options_;
  int64_t head_width_;
  std::shared_ptr<nn::Linear> query_, key_, value_, output_;
  std::shared_ptr<nn::Norm> norm_;
};

struct MlpNames {
  std::string in, out, norm;
};

struct MlpOptions {
  int64_t width = 0, inner = 0;
  double norm_eps = 1e-12;
  double dropout = 0;             // of the output
  double activation_dropout = 0;  // of the activations
  uint64_t first_site = 0;  // number of its first dropout site; it has two if it drops activations, else one
  nn::Activation activation = {};
  nn::TensorParallel ranks = {};  // among which inner columns are divided
};

// norm(x + dropout(out(activation(in(x))))). If the ranks divide rows: as AttentionBlock.
class MlpBlock {
 public:
  MlpBlock(torch::nn::Module& layer, const MlpNames& names, const MlpOptions& options);

  // x [T, H]: the rows of `layout`.
  Tensor forward(const Tensor& x, const nn::PackedLayout& layout, const nn::Context& context) const;

 private:
  MlpOptions options_;
  std::shared_ptr<nn::Linear> in_, out_;
  std::shared_ptr<nn::Norm> norm_;
};

// The rows between a model's blocks: those of `layout` or, with sequence parallelism, this rank's.
class RowsBetweenBlocks {
 public:
  // Rows are not divided if the context has a cache of keys and values.
  RowsBetweenBlocks(const nn::TensorParallel& ranks, const nn::PackedLayout& layout,
                    const nn::Context& context);

  // The layout for blocks: if rows are divided, padded to a multiple of the ranks.
  const nn::PackedLayout& layout() const { return layout_; }

  // From all rows [T, ...] of the layout that was passed to the constructor, equal on all ranks, to those of
  // the first block.
  Tensor divide(const Tensor& all) const;
  // Back, from those of a block.
  Tensor join(const Tensor& rows) const;

 private:
  nn::TensorParallel ranks_;
  int64_t tokens_;
  nn::PackedLayout layout_;
};

// `map` as it is used with this context: with a cache, rows are not divided.
nn::Affine map_for(const nn::Linear& map, const nn::Context& context);

// x [T, ...] with copies of its last row, without gradients, behind it: `rows` rows.
Tensor padded_rows(const Tensor& x, int64_t rows);

// Heads that `ranks` cannot divide; make_text_model() adds the name of the model's config.json.
struct UnevenHeads : ConfigError {
  using ConfigError::ConfigError;
};

// Throws UnevenHeads unless `ranks` divide the heads of queries evenly, and those of keys and values evenly
// or with as many ranks for each.
void require_divisible_heads(int64_t heads, int64_t key_heads, const nn::TensorParallel& ranks);

// Throws DataError if a sequence is longer than the model's `max_length` tokens.
void require_length(const nn::PackedLayout& layout, int64_t max_length);

// forward(carry) of block number `index`; with activation checkpointing if `context` requests it.
Tensor run_block(const torch::nn::Module& block, int64_t index, const nn::Context& context,
                 const nn::Carry& carry, const std::function<Tensor(const nn::Carry&)>& forward);

// The rows of `wanted` among x [T, H], the rows of `layout`.
Tensor rows_of(const Tensor& x, const nn::PackedLayout& layout, const nn::PackedLayout& wanted);

}  // namespace stretto
