#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Byte-level vocabularies represent each byte by one printable character: visible characters of Latin-1
// unchanged, the others, in order, by U+0100 and so on (GPT-2; the space is U+0120).

// The bytes that a token represents; nullopt if one of its characters represents no byte.
std::optional<std::string> bytes_of_token(std::string_view token);

// The token of one byte.
std::string token_of_byte(unsigned char byte);

// The pre-tokenizer of GPT-2 and related models. Words are contractions ('s, 't, 're, 've, 'm, 'll, 'd), runs
// of letters, of numbers and of other characters, each with an optional preceding space, and runs of white
// space without their last character if a word follows. (This is the regular expression of Hugging Face's
// ByteLevel, implemented without a regular expression library because ids must not depend on the library's
// version of Unicode.) No byte is dropped.
class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(bool add_prefix_space) : add_prefix_space_(add_prefix_space) {}

  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  bool split_unchanged(std::string_view text, std::vector<WordRange>& words) const override;
  bool works_in_parts() const override { return true; }
  std::string description() const override;

 private:
  bool add_prefix_space_;  // insert a space before a text that does not begin with one
};

}  // namespace stretto::text
