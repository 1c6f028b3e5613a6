#pragma once

#include <memory>
#include <string>

#include "stretto/text/normalizer.h"

namespace stretto::text {

// Replaces every match of a text or of a regular expression. Expressions use PCRE2's syntax; those with a
// different meaning in the Ruby syntax of Hugging Face tokenizers are refused. (Their library, Oniguruma, is
// not used because it replaces the C library's regcomp in every program.)
class ReplaceNormalizer : public Normalizer {
 public:
  // Throws DataError, naming `place`, if `pattern` is not a regular expression or matches the empty text.
  ReplaceNormalizer(std::string pattern, bool is_regex, std::string content, const std::string& place);
  ~ReplaceNormalizer() override;

  // The source of a replacement is the last character of the match.
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;

 private:
  class Expression;

  std::string pattern_;
  std::string content_;
  std::unique_ptr<Expression> expression_;  // null: the pattern is a text
};

}  // namespace stretto::text
