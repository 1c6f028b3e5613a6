#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Byte-level vocabularies spell each byte as one printable character: those of Latin-1 that are visible as themselves, the
// others, in order, as U+0100 and so on (GPT-2; the space is U+0120).

// The bytes that a token stands for; nothing if it holds a character that spells no byte.
std::optional<std::string> bytes_of_token(std::string_view token);

// The token of one byte.
std::string token_of_byte(unsigned char byte);

// How GPT-2 cuts words, and models after it: contractions ('s, 't, 're, 've, 'm, 'll, 'd), runs of letters, of numbers and of
// other characters, each with one space before it, and runs of white space but for their last character where a word follows.
// (The regular expression of Hugging Face's ByteLevel; scanned by hand because ids must not depend on the version of
// Unicode that a library of regular expressions implements.) No byte is dropped.
class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(bool add_prefix_space) : add_prefix_space_(add_prefix_space) {}

  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override;

 private:
  bool add_prefix_space_;  // a space in front of a text that begins with none
};

}  // namespace stretto::text
