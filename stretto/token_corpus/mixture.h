#pragma once

#include "stretto/token_corpus/blocks.h"

namespace stretto::token_corpus {

// A part of a mixture: its blocks, and its share of the drawn blocks relative to the other parts.
struct WeightedBlocks {
  std::shared_ptr<const CorpusBlocks> blocks;
  double weight = 1;
};

// Mixes the blocks of several corpora in given proportions. The sequence is long enough that each block of
// each part occurs at least once; parts with more than their share by size are repeated, and the numbers of
// occurrences of two blocks of a part differ by at most one. Every range of the sequence has the proportions
// of the whole, up to one block per halving of the parts. The block at an index is a pure function of the
// index; memory is needed per part, not per block.
class Mixture : public Blocks {
 public:
  // Throws ConfigError for weights that are not positive, for no parts, and for parts of different block
  // sizes.
  explicit Mixture(const std::vector<WeightedBlocks>& parts);

  int64_t size() const override { return counts_.back(); }
  int32_t block_size() const override { return parts_.front()->block_size(); }
  int32_t length(int64_t block) const override;
  int64_t tokens() const override;
  Block read(int64_t block) const override;
  std::string fingerprint() const override;

  // A part and the number of a block in it.
  struct Source {
    size_t part;
    int64_t block;
  };
  Source source(int64_t block) const;

  // The number of blocks of the mixture that come from a part.
  int64_t count(size_t part) const { return counts_[part + 1] - counts_[part]; }

 private:
  std::vector<std::shared_ptr<const CorpusBlocks>> parts_;
  // the number of blocks of the parts before each part; the last entry is the size
  std::vector<int64_t> counts_;
};

}  // namespace stretto::token_corpus
