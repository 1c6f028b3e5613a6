#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Hugging Face's WhitespaceSplit: splits at white space.
class WhitespaceSplit : public PreTokenizer {
 public:
  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override { return "white space\n"; }
};

}  // namespace stretto::text
