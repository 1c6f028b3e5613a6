#pragma once

#include "stretto/text/pre_tokenizer.h"

namespace stretto::text {

struct MetaspaceOptions {
  enum class Prepend { always, first, never };
  std::string replacement = "\u2581";  // stands for a space
  Prepend prepend =
      Prepend::always;  // in front of a text (first: only where the text begins) that does not begin with it
  bool split = true;    // each replacement begins a word
  bool split_white_space =
      false;  // white space separates and is dropped first; each part is then a text of its own
};

// SentencePiece's way with spaces: Hugging Face's Metaspace, or WhitespaceSplit followed by it.
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
