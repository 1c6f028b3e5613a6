#pragma once

#include <memory>
#include <vector>

#include "stretto/data/dataset.h"

namespace stretto::token_corpus {
class Blocks;
}

namespace stretto::data {

// The blocks of a token corpus, or of a mixture of several, as samples for language models. It stores nothing
// per block: the time in which a run begins, or is resumed at any block, does not depend on their number.
class BlockDataset : public Dataset {
 public:
  // Batches are padded to multiples of pad_to_multiple_of tokens. REQUIRES: pad_to_multiple_of > 0.
  explicit BlockDataset(std::shared_ptr<const token_corpus::Blocks> blocks, int64_t pad_to_multiple_of = 1);
  ~BlockDataset() override;

  int64_t size() const override;
  int32_t length_of(int64_t block) const override;
  int64_t total_length() const override;
  int32_t block_size() const override;
  std::string fingerprint() const override;

  // Packs blocks (see Batch): each document of a block is a sequence, whose positions begin at 0. labels [T]
  // contain for each token the next token of its sequence. They are -100, which losses ignore, for the last
  // token of a sequence, for padding and for tokens before Block::first_predicted. samples, places,
  // sample_ids and count refer to blocks; cu_samples [B + 1] contains the row where each block begins, and
  // where the last one ends. Throws DataError if the corpus is damaged.
  Batch pack(std::span<const int64_t> blocks) const override;

 private:
  std::shared_ptr<const token_corpus::Blocks> blocks_;
  int64_t pad_to_multiple_of_;
};

}  // namespace stretto::data
