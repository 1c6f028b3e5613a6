#pragma once

#include <string>
#include <vector>

#include "stretto/text/model.h"
#include "stretto/text/normalizer.h"

namespace stretto::text {

// Splits normalised text into words: tokenizer.json's `pre_tokenizer`. Thread-safe.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Appends the words of `text`, in order, to `words`; they do not overlap, and text between them is dropped.
  // May insert and replace characters of `text`, such as a space before the first word; `scratch` is a buffer
  // for that. REQUIRES: valid UTF-8, not empty.
  virtual void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const = 0;

  // All settings that affect the words.
  virtual std::string description() const = 0;
};

}  // namespace stretto::text
