#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/text/tokenizer.h"

// The inputs of models for a question and its context, in training and in serving.
namespace stretto::data {

struct WindowSizes {
  int64_t max_length = 0;  // tokens: question, window of the context and special tokens
  int64_t stride = 0;      // tokens of the context that consecutive windows share
};

// A question without its leading white space, as in run_qa: some questions of SQuAD have much of it, which
// would count as length.
std::string_view question_text(std::string_view question);

// Encodes question_text() of a question with each window of its context: [CLS] question [SEP] window [SEP]
// for BERT. Throws like Tokenizer::encode_pair_windows if the question leaves no room.
std::vector<text::Encoding> question_windows(const text::Tokenizer& tokenizer, std::string_view question,
                                             std::string_view context, const WindowSizes& sizes);

// The tokens [first, second) of a window that belong to the context; {0, 0} if there are none.
std::pair<size_t, size_t> context_tokens(const text::Encoding& window);

// Finds code points [begin, end) of a text.
class CodePointIndex {
 public:
  explicit CodePointIndex(std::string_view text);
  int64_t size() const { return std::ssize(begins_) - 1; }
  // REQUIRES: 0 <= begin <= end <= size().
  std::string_view slice(int64_t begin, int64_t end) const {
    return text_.substr(begins_[static_cast<size_t>(begin)],
                        begins_[static_cast<size_t>(end)] - begins_[static_cast<size_t>(begin)]);
  }

 private:
  std::string_view text_;
  std::vector<size_t> begins_;  // bytes
};

}  // namespace stretto::data
