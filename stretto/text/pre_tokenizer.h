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

  // Does the same as split() if that leaves the text unchanged. Returns false, without words, if it does not
  // or if this pre-tokenizer cannot tell.
  virtual bool split_unchanged(std::string_view /*text*/, std::vector<WordRange>& /*words*/) const {
    return false;
  }

  // Whether the words of a text are those of its parts if it is cut before a space (U+0020) that follows a
  // character other than white space.
  virtual bool works_in_parts() const { return false; }

  // All settings that the words depend on.
  virtual std::string description() const = 0;
};

}  // namespace stretto::text
