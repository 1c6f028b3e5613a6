#pragma once

#include "stretto/token_corpus/blocks.h"

namespace stretto::token_corpus {

// A part of a mixture: its blocks, and its share of the blocks that are drawn, relative to the other parts'.
struct WeightedBlocks {
  std::shared_ptr<const CorpusBlocks> blocks;
  double weight = 1;
};

// The blocks of several corpora in given proportions. The sequence is as long as needed for each block of
// each part to occur at least once; parts with more than their share by size repeat, none of their blocks
// more than once more often than another. Every stretch of the sequence has the proportions of the whole, but
// for one block per halving of the parts. A pure function of the index, with memory per part, not per block.
class Mixture : public Blocks {
 public:
  // Throws ConfigError for weights that are not above 0, no parts, and parts of different block sizes.
  explicit Mixture(std::vector<WeightedBlocks> parts);

  int64_t size() const override { return counts_.back(); }
  int32_t block_size() const override { return parts_.front()->block_size(); }
  int32_t length(int64_t block) const override;
  int64_t tokens() const override;
  Block read(int64_t block) const override;
  std::string fingerprint() const override;

  // The part of a block of the mixture, and its number there.
  struct Source {
    size_t part;
    int64_t block;
  };
  Source source(int64_t block) const;

  // How often the blocks of a part occur, in all.
  int64_t count(size_t part) const { return counts_[part + 1] - counts_[part]; }

 private:
  std::vector<std::shared_ptr<const CorpusBlocks>> parts_;
  std::vector<int64_t> counts_;  // of the parts before each; the last is the size
};

}  // namespace stretto::token_corpus
