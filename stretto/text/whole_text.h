#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

// No pre-tokenizer: the text is one word.
class WholeText : public PreTokenizer {
 public:
  void split(NormalizedText& text, NormalizedText& /*scratch*/,
             std::vector<WordRange>& words) const override {
    words.push_back({0, static_cast<uint32_t>(text.bytes.size())});
  }
  std::string description() const override { return "whole text\n"; }
};

}  // namespace stretto::text
