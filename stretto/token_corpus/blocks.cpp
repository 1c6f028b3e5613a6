#include "stretto/token_corpus/blocks.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::token_corpus {

BlockOptions run_clm_blocks(int32_t block_size) {
  return {
      .block_size = block_size, .separate_documents = false, .drop_last = true, .documents_per_group = 1000};
}

CorpusBlocks::CorpusBlocks(std::shared_ptr<const Corpus> corpus, const BlockOptions& options)
    : corpus_(std::move(corpus)), options_(options) {
  if (options_.block_size < 2)
    throw ConfigError("a block size of {} is not possible; a block needs 2 tokens, of which one is predicted",
                      options_.block_size);
  if (options_.documents_per_group < 0)
    throw ConfigError("groups of {} documents are not possible", options_.documents_per_group);
  const int64_t block = options_.block_size;
  if (options_.documents_per_group == 0) {
    size_ = corpus_->tokens() / block + (corpus_->tokens() % block > 0 && !options_.drop_last);
  } else {
    for (int64_t first = 0; first < corpus_->documents(); first += options_.documents_per_group) {
      const int64_t end = std::min(corpus_->documents(), first + options_.documents_per_group);
      first_blocks_.push_back(size_);
      size_ += (corpus_->document_begin(end) - corpus_->document_begin(first)) / block;
    }
  }
  if (size_ > 0) return;
  throw ConfigError("{}: its {} tokens are no block of {}; choose a smaller block size",
                    corpus_->folder().string(), corpus_->tokens(), block);
}

CorpusBlocks::Range CorpusBlocks::range(int64_t block) const {
  int64_t origin = 0, index = block;
  if (!first_blocks_.empty()) {
    // A group without a block has the same first block as the next group, so the last group that begins at or
    // before `block` contains it.
    const auto group = std::ranges::upper_bound(first_blocks_, block) - first_blocks_.begin() - 1;
    origin = corpus_->document_begin(group * options_.documents_per_group);
    index -= first_blocks_[static_cast<size_t>(group)];
  }
  const int64_t begin = origin + index * options_.block_size;
  return {begin, std::min(corpus_->tokens(), begin + options_.block_size)};
}

int32_t CorpusBlocks::length(int64_t block) const {
  const auto [begin, end] = range(block);
  return static_cast<int32_t>(end - begin);
}

int64_t CorpusBlocks::tokens() const { return (size_ - 1) * options_.block_size + length(size_ - 1); }

Block CorpusBlocks::read(int64_t block) const {
  const auto [begin, end] = range(block);
  Block result{{}, {0}, 0};
  result.ids.reserve(static_cast<size_t>(end - begin));
  corpus_->read(begin, end, result.ids);
  if (!options_.separate_documents) return result;
  for (int64_t document = corpus_->document_at(begin) + 1; document < corpus_->documents(); ++document) {
    const int64_t start = corpus_->document_begin(document);
    if (start >= end) break;
    if (start <= begin + result.starts.back()) {
      throw DataError(
          "{}: damaged: its documents do not follow one another; `stretto data inspect` can compare its checksums",
          corpus_->folder().string());
    }
    result.starts.push_back(static_cast<int32_t>(start - begin));
  }
  return result;
}

std::string CorpusBlocks::fingerprint() const {
  return hash128_hex(fmt::format("{} {} {} {} {}", corpus_->fingerprint(), options_.block_size,
                                 options_.separate_documents, options_.drop_last,
                                 options_.documents_per_group));
}

}  // namespace stretto::token_corpus
