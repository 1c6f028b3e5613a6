#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stretto::text {

// How tokens become text again: tokenizer.json's `decoder`.
struct Decoder {
  enum class Kind { join_by_space, wordpiece, byte_level, metaspace, unavailable };
  Kind kind = Kind::join_by_space;
  std::string mark = {};  // wordpiece: the prefix of continuing pieces; metaspace: what stands for a space
  bool cleanup = true;    // wordpiece: no spaces in front of punctuation, contractions closed
  bool drop_first_mark = true;  // metaspace: the space that stands for nothing in the text
  std::string type = {};        // unavailable: its name, and the file
};

// Hugging Face's decoding of these tokens; bytes that are not UTF-8 become U+FFFD. Throws DataError for a decoder that is not
// available.
std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens);

}  // namespace stretto::text
