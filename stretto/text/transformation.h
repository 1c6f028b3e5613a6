#pragma once

#include <cstdint>

#include "stretto/text/normalizer.h"

namespace stretto::text {

// Writes the characters that replace those of a text, and tracks the original character of each one like
// Hugging Face tokenizers (NormalizedString::transform).
class Transformation {
 public:
  // The text's first character has the index `first_character`.
  Transformation(uint32_t first_character, NormalizedText& out)
      : first_(first_character), next_(first_character), out_(out) {}

  // Skips the next `count` characters of the text.
  void skip(uint32_t count) { next_ += count; }

  // Writes a character. change 0: it replaces the text's next character; negative: that one and -change
  // further ones; positive: it is additional, and its source is the previous character.
  void write(char32_t c, int change);

  // Copies a part of the text unchanged.
  void copy(std::string_view part);

 private:
  uint32_t first_;
  uint32_t next_;
  NormalizedText& out_;
};

}  // namespace stretto::text
