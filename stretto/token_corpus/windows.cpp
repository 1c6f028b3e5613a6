#include "stretto/token_corpus/windows.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto::token_corpus {

Windows::Windows(std::shared_ptr<const Corpus> corpus, int32_t window, int32_t stride)
    : corpus_(std::move(corpus)), window_(window), stride_(stride) {
  if (window_ < 2 || stride_ < 1 || stride_ > window_)
    throw ConfigError("windows of {} tokens that begin {} tokens apart are not possible", window_, stride_);
  if (corpus_->tokens() < 2)
    throw ConfigError("{}: it has {} token(s); at least 2 are needed, of which one is predicted",
                      corpus_->folder().string(), corpus_->tokens());
  const int64_t behind_first = std::max<int64_t>(0, corpus_->tokens() - window_);
  size_ = 1 + (behind_first + stride_ - 1) / stride_;
}

int32_t Windows::length(int64_t block) const {
  return static_cast<int32_t>(std::min<int64_t>(window_, corpus_->tokens() - block * stride_));
}

int64_t Windows::tokens() const { return (size_ - 1) * window_ + length(size_ - 1); }

Block Windows::read(int64_t block) const {
  Block result{{}, {0}, block == 0 ? 0 : window_ - stride_};
  const int64_t begin = block * stride_;
  corpus_->read(begin, begin + length(block), result.ids);
  return result;
}

std::string Windows::fingerprint() const {
  return hash128_hex(fmt::format("{} windows {} {}", corpus_->fingerprint(), window_, stride_));
}

}  // namespace stretto::token_corpus
