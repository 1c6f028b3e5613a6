#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stretto/token_corpus/corpus.h"

namespace stretto::token_corpus {

// What a language model reads as one sample.
struct Block {
  std::vector<int32_t> ids;
  // The index in `ids` where each document, or part of one, begins; the first is 0.
  std::vector<int32_t> starts;
  // Tokens of `ids` before this index are context: they are not predicted, nor is the first of a document.
  int32_t first_predicted = 0;
};

// Blocks of up to so many tokens, each of which can be read without those before it. Thread-safe.
class Blocks {
 public:
  virtual ~Blocks() = default;
  virtual int64_t size() const = 0;
  virtual int32_t block_size() const = 0;  // tokens of a block; few have less
  virtual int32_t length(int64_t block) const = 0;
  virtual int64_t tokens() const = 0;  // of all blocks
  // Throws DataError where the corpus is damaged. REQUIRES: 0 <= block < size().
  virtual Block read(int64_t block) const = 0;
  virtual std::string fingerprint() const = 0;  // names the contents
};

struct BlockOptions {
  int32_t block_size = 1024;
  // Documents of a block are told apart (Block::starts): a model then attends within each of them. Else a
  // block is one sequence.
  bool separate_documents = true;
  // A last block that is shorter is left out.
  bool drop_last = false;
  // > 0: blocks are cut from groups of so many documents, with drop_last for each group, as Hugging Face's
  // run_clm does (1000). Takes 8 bytes of memory per group.
  int64_t documents_per_group = 0;
};

// run_clm's blocks: one sequence each, cut from the documents joined.
BlockOptions run_clm_blocks(int32_t block_size);

// The blocks of a corpus: consecutive tokens, so that documents are cut where blocks are. O(log documents) to
// read one.
class CorpusBlocks : public Blocks {
 public:
  // Throws ConfigError for options out of range, and where the corpus has fewer tokens than a block needs.
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
  std::vector<int64_t> first_blocks_;  // of each group; empty: one group
};

}  // namespace stretto::token_corpus
