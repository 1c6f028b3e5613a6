#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stretto::text {

// The conversion of tokens to text: tokenizer.json's `decoder`.
struct Decoder {
  enum class Kind { join_by_space, wordpiece, byte_level, metaspace, unavailable };
  Kind kind = Kind::join_by_space;
  std::string mark = {};  // wordpiece: the prefix of continuing pieces; metaspace: the replacement of a space
  bool cleanup = true;    // wordpiece: no spaces in front of punctuation, contractions closed
  bool drop_first_mark = true;  // metaspace: drop the first space, which is not part of the text
  std::string type = {};        // unavailable: its name, and the file
};

// Decodes tokens like Hugging Face's tokenizers; invalid UTF-8 becomes U+FFFD. Throws DataError for an
// unavailable decoder.
std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens);

}  // namespace stretto::text
