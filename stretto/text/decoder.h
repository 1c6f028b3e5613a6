#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

// A step of a decoder that consists of several steps; each takes the tokens that the previous step produced.
struct DecoderStep {
  enum class Kind {
    replace,  // replaces `from` by `to` in each token
    // replaces runs of tokens such as <0xE4> by their characters, and invalid bytes by U+FFFD each
    byte_fallback,
    fuse,   // joins all tokens into one
    strip,  // removes up to `start` and `stop` characters `from` from the ends of each token
  };
  Kind kind;
  std::string from = {}, to = {};
  size_t start = 0, stop = 0;
};

// The conversion of tokens to text: tokenizer.json's `decoder`.
struct Decoder {
  enum class Kind { join_by_space, wordpiece, byte_level, metaspace, steps, unavailable };
  Kind kind = Kind::join_by_space;
  std::string mark = {};  // wordpiece: the prefix of continuing pieces; metaspace: the replacement of a space
  bool cleanup = true;    // wordpiece: no spaces in front of punctuation, contractions closed
  bool drop_first_mark = true;  // metaspace: drop the first space, which is not part of the text
  std::vector<DecoderStep> steps = {};
  std::string type = {};  // unavailable: the name of the type, and the file
};

// Decodes tokens like Hugging Face's tokenizers; invalid UTF-8 becomes U+FFFD. Throws DataError for an
// unavailable decoder.
std::string decode_tokens(const Decoder& decoder, std::span<const std::string_view> tokens);

}  // namespace stretto::text
