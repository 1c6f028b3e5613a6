#pragma once

#include <map>
#include <span>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// The keys and values to which the rows of a pass attend in one layer.
struct CachedKeys {
  Tensor keys, values;  // [capacity, key heads, D]
  Tensor rows;          // [K] int64: the rows of each sequence's keys, in the order of their positions
  Tensor bounds;        // [B + 1] int64: the keys of sequence b are rows[bounds[b]] .. rows[bounds[b + 1]]
  int64_t longest = 0;  // the most keys of a sequence
};

// Stores the keys and values of tokens that a model has read, so that further passes can continue their
// sequences (Context::cache). A token occupies one row, the same in all layers, and a sequence is a list of
// rows. Sequences with a common prefix can therefore share its rows, and a batch needs no padding. Memory
// grows with the largest number of tokens that are stored at a time. Not thread-safe.
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

  // A sequence of a pass: the rows of all its tokens. The pass reads the tokens from index `read` on.
  struct Sequence {
    std::span<const int64_t> rows;
    size_t read;
  };

  // Returns `count` free rows, each with one user.
  Rows take(int64_t count);
  // Adds a user to the rows: a sequence that begins with the tokens of another sequence.
  void share(std::span<const int64_t> rows);
  // Removes a user from the rows; rows without users become free.
  void release(std::span<const int64_t> rows);

  // Prepares the next pass: its packed batch must contain these sequences, in this order, with their tokens
  // from `read` on. REQUIRES: read < rows.size().
  void begin_pass(std::span<const Sequence> sequences);

  // Stores the keys and values [T, key heads, D] of the pass. T may exceed the number of its tokens by
  // padding, which is not stored. `layer`: any number that identifies the layer. Throws ShapeError if there
  // are fewer rows than the pass reads.
  CachedKeys append(uint64_t layer, const Tensor& keys, const Tensor& values);

  // The number of rows in use.
  int64_t used() const { return std::ssize(users_) - std::ssize(free_); }

 private:
  struct Layer {
    Tensor keys, values;
  };

  std::map<uint64_t, Layer> layers_;
  std::vector<int64_t> users_;  // the number of users of each row
  Rows free_;
  Tensor written_;        // [T]: the rows of the tokens that the pass reads
  Tensor rows_, bounds_;  // members of CachedKeys
  int64_t longest_ = 0;
};

}  // namespace stretto::nn
