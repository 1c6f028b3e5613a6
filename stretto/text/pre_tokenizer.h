#pragma once

#include <string>
#include <vector>

#include "stretto/text/model.h"
#include "stretto/text/normalizer.h"

namespace stretto::text {

// Normal form to words: tokenizer.json's `pre_tokenizer`. Safe to use from many threads.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Appends the words of `text`, in order, to `words`; they do not overlap, and what is between them is dropped. May insert and replace characters
  // of `text`, such as a space in front of the first word; `scratch` is a buffer for that. REQUIRES: valid UTF-8, not empty.
  virtual void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const = 0;

  // All settings that the words depend on.
  virtual std::string description() const = 0;
};

}  // namespace stretto::text
