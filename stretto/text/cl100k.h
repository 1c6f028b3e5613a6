#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Splits words as the vocabulary cl100k_base of OpenAI's tiktoken, Llama 3 and Qwen do. A word is a
// contraction in upper or lower case; a run of letters, with one preceding character that is not a letter,
// number or line end; a number of up to `longest_number` digits; a run of other characters, with one
// preceding space and the line ends that follow; or white space: up to the last line end in it, or else
// without its last character if a word follows. No byte is dropped. (The files contain this as a regular
// expression; it is implemented by hand for the reason given in byte_level.h.)
class Cl100kPreTokenizer : public PreTokenizer {
 public:
  explicit Cl100kPreTokenizer(int longest_number) : longest_number_(longest_number) {}

  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  bool works_in_parts() const override { return true; }
  std::string description() const override;

 private:
  int longest_number_;
};

}  // namespace stretto::text
