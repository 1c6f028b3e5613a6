#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// Words as Hugging Face's BertPreTokenizer splits them: white space separates and is dropped, each punctuation character is a
// word of its own.
class BertPreTokenizer : public PreTokenizer {
 public:
  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override { return ""; }
};

}  // namespace stretto::text
