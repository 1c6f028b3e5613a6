#pragma once

#include "stretto/token_corpus/blocks.h"

namespace stretto::token_corpus {

// A range of consecutive blocks: those for training or for validation, or the first ones.
class BlockRange : public Blocks {
 public:
  // Blocks [first, first + count) of `whole`. REQUIRES: 0 <= first, 0 < count, first + count <=
  // whole->size(); only the last block of `whole` may be shorter than the others.
  BlockRange(std::shared_ptr<const Blocks> whole, int64_t first, int64_t count)
      : whole_(std::move(whole)), first_(first), count_(count) {}

  int64_t size() const override { return count_; }
  int32_t block_size() const override { return whole_->block_size(); }
  int32_t length(int64_t block) const override { return whole_->length(first_ + block); }
  int64_t tokens() const override { return (count_ - 1) * length(0) + length(count_ - 1); }
  Block read(int64_t block) const override { return whole_->read(first_ + block); }
  std::string fingerprint() const override;

 private:
  std::shared_ptr<const Blocks> whole_;
  int64_t first_, count_;
};

}  // namespace stretto::token_corpus
