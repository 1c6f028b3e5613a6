#pragma once

#include <map>
#include <span>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// What the rows of a pass attend to, in one layer.
struct CachedKeys {
  Tensor keys, values;  // [capacity, key heads, D]
  Tensor rows;          // [K] int64: where the keys of each sequence are, in the order of their positions
  Tensor bounds;        // [B + 1] int64: sequence b's are rows[bounds[b]] .. rows[bounds[b + 1]]
};

// The keys and values of tokens that a model has read, for further passes that continue their sequences
// (Context::cache). A token occupies one row, the same in all layers, and a sequence is a list of rows, so
// sequences with a common beginning share its rows, and a batch needs no padding. The memory grows with the
// largest number of tokens held at a time. Not thread-safe.
//
//   KeyValueCache cache;
//   auto rows = cache.take(prompt.size());           // a prompt
//   cache.begin_pass({{rows, 0}});                   // none of its tokens has been read
//   model.forward(batch, {.cache = &cache});
//   for (int64_t row : cache.take(1)) rows.push_back(row);
//   cache.begin_pass({{rows, rows.size() - 1}});     // the next token; its position_ids are rows.size() - 1
class KeyValueCache {
 public:
  using Rows = std::vector<int64_t>;

  // A sequence of a pass: the rows of all its tokens, of which the pass reads those from `read` on.
  struct Sequence {
    std::span<const int64_t> rows;
    size_t read;
  };

  // `count` free rows.
  Rows take(int64_t count);
  // The rows have one more user: a sequence that begins with the tokens of another one.
  void share(std::span<const int64_t> rows);
  // The rows have one user less; those without users are free.
  void release(std::span<const int64_t> rows);

  // Says what the next pass reads: its packed batch holds these sequences, in this order, with their tokens
  // from `read` on. REQUIRES: read < rows.size().
  void begin_pass(std::span<const Sequence> sequences);

  // Writes the keys and values [T, key heads, D] of the pass. T may exceed its tokens by padding, which is
  // not kept. `layer`: any number that identifies the layer. Throws ShapeError for fewer rows than the pass
  // reads.
  CachedKeys append(uint64_t layer, const Tensor& keys, const Tensor& values);

  // The rows in use.
  int64_t used() const { return std::ssize(users_) - std::ssize(free_); }

 private:
  struct Layer {
    Tensor keys, values;
  };

  std::map<uint64_t, Layer> layers_;
  std::vector<int64_t> users_;  // of each row
  Rows free_;
  Tensor written_;        // [T]: the rows of the tokens that the pass reads
  Tensor rows_, bounds_;  // of CachedKeys
};

}  // namespace stretto::nn
