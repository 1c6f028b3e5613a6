#pragma once

#include <cstddef>
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
  void append(std::string_view part, uint32_t character) {
    bytes.append(part);
    characters.resize(bytes.size(), character);
  }
  // Bytes [begin, end) of another text.
  void append(const NormalizedText& other, size_t begin, size_t end) {
    bytes.append(other.bytes, begin, end - begin);
    characters.insert(characters.end(), other.characters.begin() + static_cast<ptrdiff_t>(begin),
                      other.characters.begin() + static_cast<ptrdiff_t>(end));
  }
};

// Text to normal form: tokenizer.json's `normalizer`. Safe to use from many threads.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Appends the normal form of `text` to `out`; its first code point has the index `first_character`.
  // REQUIRES: valid UTF-8.
  virtual void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const = 0;

  // All settings that the normal form depends on.
  virtual std::string description() const = 0;

  virtual bool lowercase() const { return false; }
};

// Leaves the text as it is.
class NoNormalizer : public Normalizer {
 public:
  void normalize(std::string_view text, uint32_t first_character, NormalizedText& out) const override;
  std::string description() const override { return "none"; }
};

}  // namespace stretto::text
