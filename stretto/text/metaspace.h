#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

struct MetaspaceOptions {
  enum class Prepend { always, first, never };
  std::string replacement = "\u2581";  // the replacement of a space
  // Prepends the replacement to texts (first: only to the first one) that do not begin with it.
  Prepend prepend = Prepend::always;
  bool split = true;  // each replacement begins a word
  // First splits at white space, which is dropped; each part is then a separate text.
  bool split_white_space = false;
};

// SentencePiece's treatment of spaces: Hugging Face's Metaspace, or WhitespaceSplit followed by it.
class MetaspacePreTokenizer : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(MetaspaceOptions options) : options_(std::move(options)) {}

  void split(NormalizedText& text, NormalizedText& scratch, std::vector<WordRange>& words) const override;
  std::string description() const override;

 private:
  void add_part(const NormalizedText& text, size_t begin, size_t end, NormalizedText& out,
                std::vector<WordRange>& words) const;

  MetaspaceOptions options_;
};

}  // namespace stretto::text
