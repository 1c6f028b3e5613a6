#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Hugging Face's BertPreTokenizer: splits at white space, which is dropped, and makes each punctuation
// character a word.
class BertPreTokenizer : public PreTokenizer {
 public:
  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override { return ""; }
  bool split_unchanged(std::string_view text, std::vector<WordRange>& words) const override;
  bool works_in_parts() const override { return true; }
};

}  // namespace stretto::text
