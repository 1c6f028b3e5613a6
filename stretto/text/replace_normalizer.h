#pragma once

#include <memory>
#include <string>

#include "stretto/text/normalizer.h"

namespace stretto::text {

// Replaces every match of a text or of a regular expression. The expressions are PCRE2's; what would mean something else in the
// syntax of Hugging Face tokenizers (Ruby's) is refused. (Their library, Oniguruma, replaces the C library's regcomp in every program.)
class ReplaceNormalizer : public Normalizer {
 public:
  // Throws DataError, naming `place`, when `pattern` is not a regular expression or matches nothing in particular (an empty text).
  ReplaceNormalizer(std::string pattern, bool is_regex, std::string content, const std::string& place);
  ~ReplaceNormalizer() override;

  // A replacement stands for the last character of what it replaces.
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;

 private:
  class Expression;

  std::string pattern_;
  std::string content_;
  std::unique_ptr<Expression> expression_;  // null: the pattern is a text
};

}  // namespace stretto::text
