#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stretto/token_corpus/corpus.h"

namespace stretto::token_corpus {

// The tokens that a language model reads as one sample.
struct Block {
  std::vector<int32_t> ids;
  // The index in `ids` at which each document, or part of one, begins; the first is 0.
  std::vector<int32_t> starts;
  // Tokens of `ids` before this index are context and are not predicted. The first token of a document is not
  // predicted either.
  int32_t first_predicted = 0;
};

// Blocks of up to block_size() tokens, each of which can be read without the previous ones. Thread-safe.
class Blocks {
 public:
  virtual ~Blocks() = default;
  virtual int64_t size() const = 0;
  virtual int32_t block_size() const = 0;  // the size of a block; a few blocks are shorter
  virtual int32_t length(int64_t block) const = 0;
  virtual int64_t tokens() const = 0;  // the number of tokens of all blocks
  // Throws DataError if the corpus is damaged. REQUIRES: 0 <= block < size().
  virtual Block read(int64_t block) const = 0;
  virtual std::string fingerprint() const = 0;  // identifies the contents
};

// How the tokens of a corpus are cut into blocks.
struct BlockOptions {
  int32_t block_size = 1024;
  // Whether a block marks its documents (Block::starts), so that a model attends within each of them.
  // Otherwise a block is one sequence.
  bool separate_documents = true;
  // Drops the last block if it is shorter.
  bool drop_last = false;
  // > 0: blocks are cut from groups of this many documents, and drop_last applies to each group, as in
  // Hugging Face's run_clm (1000). Takes 8 bytes of memory per group.
  int64_t documents_per_group = 0;
};

// The options that give run_clm's blocks: one sequence each, cut from the joined documents.
BlockOptions run_clm_blocks(int32_t block_size);

// The blocks of a corpus: consecutive tokens, so that block boundaries may cut documents. Reading a block
// takes O(log documents).
class CorpusBlocks : public Blocks {
 public:
  // Throws ConfigError for options out of range, and if the corpus has fewer tokens than a block needs.
  CorpusBlocks(std::shared_ptr<const Corpus> corpus, const BlockOptions& options);

  int64_t size() const override { return size_; }
  int32_t block_size() const override { return options_.block_size; }
  int32_t length(int64_t block) const override;
  int64_t tokens() const override;
  Block read(int64_t block) const override;
  std::string fingerprint() const override;

 private:
  struct Range {
    int64_t begin, end;
  };
  Range range(int64_t block) const;

  std::shared_ptr<const Corpus> corpus_;
  BlockOptions options_;
  int64_t size_ = 0;
  std::vector<int64_t> first_blocks_;  // the first block of each group; empty: one group
};

}  // namespace stretto::token_corpus
