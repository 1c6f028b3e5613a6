#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Hugging Face's WhitespaceSplit: splits at white space.
class WhitespaceSplit : public PreTokenizer {
 public:
  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override { return "white space\n"; }
  bool split_unchanged(std::string_view text, std::vector<WordRange>& words) const override;
  bool works_in_parts() const override { return true; }
};

}  // namespace stretto::text
