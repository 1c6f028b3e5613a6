#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace stretto::text {

// Properties of code points, exactly as in the Rust crates that Hugging Face tokenizers uses, so that ids
// agree for every character. These use different versions of Unicode:
//   categories (Cc, Cf, Co, Mn, P*)    Unicode 8.0, as tables in unicode_tables.cpp
//   M*                                 Unicode 9.0, as a table
//   decomposition, composition, order  Unicode 9.0, utf8proc's data cut back to it
//   \p{L}, \p{N}                       Unicode 16.0, as tables
//   \w                                 Unicode 16.0, utf8proc's data and what version 15 lacks
//   lower case, grapheme clusters      Unicode 17.0, the same
// A test compares every code point with checksums from tokenizers itself, which detects another version of
// utf8proc.

bool is_control(char32_t c);          // Cc, Cf, Co
bool is_nonspacing_mark(char32_t c);  // Mn
bool is_combining_mark(char32_t c);   // M*
// P*, and every ASCII character that is neither letter, digit, space nor control character.
bool is_punctuation(char32_t c);
bool is_whitespace(char32_t c);      // White_Space
bool is_chinese(char32_t c);         // the blocks that BERT surrounds with spaces
bool is_word_character(char32_t c);  // \w of a Unicode regular expression

// The class of a character in a Unicode regular expression: \p{L}, \p{N}, \s or none of them.
enum class CharacterKind : uint8_t { letter, number, space, other };
CharacterKind character_kind(char32_t c);

// Whether Unicode 15.1 to 17.0 added the character to those that extend the previous grapheme cluster
// (Extend, SpacingMark).
bool extends_grapheme_later(char32_t c);

// The combining class; 0 for characters that are never reordered.
uint8_t combining_class(char32_t c);

struct CodePoints {
  std::array<char32_t, 4> values;
  int size;
};

CodePoints lower_case(char32_t c);  // one or two
CodePoints decompose(char32_t c);   // full canonical decomposition: one to four

using Decomposition = std::array<char32_t, 18>;

// Write the full canonical and the full compatibility decomposition to `buffer`, and return the part that was
// written.
std::span<const char32_t> decompose(char32_t c, Decomposition& buffer);
std::span<const char32_t> decompose_compatible(char32_t c, Decomposition& buffer);

// The primary composite of two characters.
std::optional<char32_t> compose(char32_t first, char32_t second);

}  // namespace stretto::text
