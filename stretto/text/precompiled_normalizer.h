#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/normalizer.h"

namespace stretto::text {

// The normalizer of a SentencePiece model: its "precompiled charsmap", a double-array trie (darts-clone) of
// character sequences and their replacements.
class PrecompiledNormalizer : public Normalizer {
 public:
  // `charsmap`: the size of the trie in bytes (32 bits, little-endian), its units of 32 bits, then texts that
  // end with NUL. Throws DataError, naming `place`, if it is malformed.
  PrecompiledNormalizer(std::string charsmap, const std::string& place);

  // Like Hugging Face tokenizers: an extended grapheme cluster of fewer than six bytes is replaced as a whole
  // if the map contains it or a prefix of it; otherwise each of its code points is replaced.
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override;

 private:
  std::optional<std::string_view> replacement(std::string_view part) const;

  std::string charsmap_;
  std::vector<uint32_t> units_;
  std::string_view texts_;
  std::array<bool, 128> mapped_ascii_{};
};

}  // namespace stretto::text
