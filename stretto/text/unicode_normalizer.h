#pragma once

#include "stretto/text/normalizer.h"

namespace stretto::text {

// The four normalization forms of Unicode (UAX 15) for the characters of Unicode 9.0 (see unicode.h):
// tokenizer.json's NFC, NFD, NFKC and NFKD.
struct UnicodeForm {
  bool compatibility = false;  // the K forms
  bool compose = false;        // the C forms
};

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;
  bool works_in_parts() const override { return true; }

 private:
  UnicodeForm form_;
};

}  // namespace stretto::text
