#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/tokenizer.h"

namespace stretto::generate {

// Decodes the text that a model adds to a prompt while its tokens arrive.
class TextStream {
 public:
  // `tokenizer` must outlive this object. `stop`: strings at whose first occurrence the text ends; none is
  // empty.
  TextStream(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt,
             std::vector<std::string> stop);

  // The text of the new tokens, up to the first stop string. Special tokens have no text.
  std::string text(std::span<const int32_t> new_tokens) const;

  // Whether the text of the new tokens contains a stop string, given that it contained none without the last
  // of them. Decodes the last tokens only, about as many as the longest stop string has bytes.
  bool is_stopped(std::span<const int32_t> new_tokens) const;

  // The part of this text that can be shown while further tokens may follow: it ends before an incomplete
  // character and before what may be the beginning of a stop string. It can be shorter than after an earlier
  // token if a tokenizer decodes successive bytes together.
  std::string settled(std::span<const int32_t> new_tokens) const;

 private:
  std::string decode(std::span<const int32_t> new_tokens) const;
  size_t first_stop(std::string_view text) const;  // npos if there is none
  bool may_be_stopped(std::span<const int32_t> new_tokens) const;

  const text::Tokenizer& tokenizer_;
  std::vector<int32_t> prompt_;
  std::string prompt_text_;
  std::vector<std::string> stop_;
  size_t longest_stop_ = 0;  // bytes
};

}  // namespace stretto::generate
