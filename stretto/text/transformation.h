#pragma once

#include <cstdint>

#include "stretto/text/normalizer.h"

namespace stretto::text {

// Writes the characters that replace those of a text, as Hugging Face tokenizers counts them (its NormalizedString::transform), so
// that each one written knows the original character that it stands for.
class Transformation {
 public:
  // The text's first character has the index `first_character`.
  Transformation(uint32_t first_character, NormalizedText& out)
      : first_(first_character), next_(first_character), out_(out) {}

  // Drops the next `count` characters of the text.
  void skip(uint32_t count) { next_ += count; }

  // Writes a character. change 0: it replaces the text's next character; negative: that one and -change further ones;
  // positive: it is additional, and stands for the character before.
  void write(char32_t c, int change);

  // A part of the text that stays as it is.
  void copy(std::string_view part);

 private:
  uint32_t first_;
  uint32_t next_;
  NormalizedText& out_;
};

}  // namespace stretto::text
