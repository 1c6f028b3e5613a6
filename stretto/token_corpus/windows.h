#pragma once

#include "stretto/token_corpus/blocks.h"

namespace stretto::token_corpus {

// A corpus as one stream, read through overlapping windows, so that each token is predicted once, with at
// least window - stride tokens of context where that many precede it. This is how transformers' guide on
// perplexity evaluates models of fixed length.
class Windows : public Blocks {
 public:
  // Throws ConfigError unless 0 < stride <= window and 2 <= window, and if the corpus has fewer than 2
  // tokens.
  Windows(std::shared_ptr<const Corpus> corpus, int32_t window, int32_t stride);

  int64_t size() const override { return size_; }
  int32_t block_size() const override { return window_; }
  int32_t length(int64_t block) const override;
  int64_t tokens() const override;
  Block read(int64_t block) const override;
  std::string fingerprint() const override;

 private:
  std::shared_ptr<const Corpus> corpus_;
  int32_t window_, stride_;
  int64_t size_;
};

}  // namespace stretto::token_corpus
