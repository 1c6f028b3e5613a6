#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

// Normalised text and the source of each of its bytes.
struct NormalizedText {
  std::string bytes;                 // UTF-8
  std::vector<uint32_t> characters;  // for each byte: the index of its code point in the original

  void clear() {
    bytes.clear();
    characters.clear();
  }
  void append(std::string_view part, uint32_t character) {
    bytes.append(part);
    characters.resize(bytes.size(), character);
  }
  // Appends bytes [begin, end) of another text.
  void append(const NormalizedText& other, size_t begin, size_t end) {
    bytes.append(other.bytes, begin, end - begin);
    characters.insert(characters.end(), other.characters.begin() + static_cast<ptrdiff_t>(begin),
                      other.characters.begin() + static_cast<ptrdiff_t>(end));
  }
};

// Converts text to its normal form: tokenizer.json's `normalizer`. Thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Appends the normal form of `text` to `out`; its first code point has the index `first_character`.
  // REQUIRES: valid UTF-8.
  virtual void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const = 0;

  // All settings that affect the normal form.
  virtual std::string description() const = 0;

  virtual bool lowercase() const { return false; }

  // Whether every text is its own normal form.
  virtual bool changes_nothing() const { return false; }

  // Whether the normal form of a text is that of its parts if it is cut before a space (U+0020) that follows
  // a character other than white space.
  virtual bool works_in_parts() const { return changes_nothing(); }
};

// Does not change the text.
class NoNormalizer : public Normalizer {
 public:
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "none"; }
  bool changes_nothing() const override { return true; }
};

}  // namespace stretto::text
