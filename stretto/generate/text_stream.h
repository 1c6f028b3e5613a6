#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/id_decoder.h"

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

  // Takes the next new token, and returns what it adds to the part of the text that can be shown while
  // further tokens may follow: whole characters, which no further token changes, in front of what may be the
  // beginning of a stop string. Joined, the pieces are the beginning of text() of all tokens. Takes time in
  // proportion to the piece.
  std::string add(int32_t token);

 private:
  std::string add_text(int32_t token);
  std::string decode(std::span<const int32_t> new_tokens) const;
  size_t first_stop(std::string_view text) const;  // npos if there is none
  bool may_be_stopped(std::span<const int32_t> new_tokens) const;

  const text::Tokenizer& tokenizer_;
  std::vector<int32_t> prompt_;
  std::string prompt_text_;
  std::vector<std::string> stop_;
  size_t longest_stop_ = 0;  // bytes

  // The text of the prompt with the tokens of add(), and theirs alone. Only one is left as soon as it is
  // known whether the joined text begins with the prompt's (see decode()).
  std::optional<text::IdDecoder> joined_, alone_;
  std::string joined_text_, alone_text_;  // what they returned while both are there
  std::string prompt_rest_;               // the end of prompt_text_, which joined_ has not returned
  std::string held_;                      // text of add() that may be the beginning of a stop string
  bool is_ended_ = false;                 // by a stop string
};

}  // namespace stretto::generate
