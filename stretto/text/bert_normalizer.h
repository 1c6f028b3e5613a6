#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

// Normalised text and where each of its bytes comes from.
struct NormalizedText {
  std::string bytes;  // UTF-8
  std::vector<uint32_t>
      characters;  // for each byte: the index of the code point of the original that it stands for

  void clear() {
    bytes.clear();
    characters.clear();
  }
};

// Names and meaning as Hugging Face's BertNormalizer has them.
struct BertNormalizerOptions {
  bool clean_text = true;            // control characters go, white space becomes ' '
  bool handle_chinese_chars = true;  // ' ' on both sides of each
  bool strip_accents = true;         // canonical decomposition, nonspacing marks go
  bool lowercase = true;
};

// BERT's text clean-up, in the order of Hugging Face tokenizers: clean, Chinese characters, accents, lower
// case.
class BertNormalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options = {});

  // Appends the normal form of `text` to `out`; its first code point has the index `first_character`.
  // REQUIRES: valid UTF-8.
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const;

  const BertNormalizerOptions& options() const { return options_; }

 private:
  BertNormalizerOptions options_;
  std::array<unsigned char, 128> ascii_;  // what each ASCII character becomes; `dropped` for none
};

}  // namespace stretto::text
