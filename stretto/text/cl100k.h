#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// How the vocabulary cl100k_base of OpenAI's tiktoken cuts words, and those of Llama 3 and Qwen after it:
// contractions in any case; runs of letters with one character before them that is no letter, number or end
// of a line; numbers of up to `longest_number` digits; runs of other characters with one space before and the
// ends of lines behind them; white space up to the end of the last line in it, else but for its last
// character where a word follows. No byte is dropped. (A regular expression in the files; scanned by hand for
// the reason given in byte_level.h.)
class Cl100kPreTokenizer : public PreTokenizer {
 public:
  explicit Cl100kPreTokenizer(int longest_number) : longest_number_(longest_number) {}

  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override;

 private:
  int longest_number_;
};

}  // namespace stretto::text
