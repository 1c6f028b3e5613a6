#pragma once

#include <array>

#include "stretto/text/normalizer.h"

namespace stretto::text {

// The options of Hugging Face's BertNormalizer.
struct BertNormalizerOptions {
  bool clean_text = true;            // removes control characters, replaces white space by ' '
  bool handle_chinese_chars = true;  // inserts ' ' on both sides of each
  bool strip_accents = true;         // canonical decomposition without nonspacing marks
  bool lowercase = true;
};

// BERT's text clean-up, in the order of Hugging Face tokenizers: clean, Chinese characters, accents, lower
// case.
class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options = {});

  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;
  bool lowercase() const override { return options_.lowercase; }
  bool works_in_parts() const override { return true; }

 private:
  BertNormalizerOptions options_;
  std::array<unsigned char, 128> ascii_;  // the replacement of each ASCII character; `dropped`: removed
};

}  // namespace stretto::text
