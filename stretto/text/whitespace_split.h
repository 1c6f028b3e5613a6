#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Words as Hugging Face's WhitespaceSplit has them: what white space separates.
class WhitespaceSplit : public PreTokenizer {
 public:
  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override { return "white space\n"; }
};

}  // namespace stretto::text
