#include "stretto/text/byte_level.h"

#include <array>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

bool spells_itself(unsigned char byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

// The character that represents each byte.
constexpr size_t byte_characters = 256;
const std::array<char32_t, byte_characters>& byte_alphabet() {
  static const auto alphabet = [] {
    std::array<char32_t, byte_characters> characters{};
    char32_t next = 0x100;
    for (size_t byte = 0; byte < byte_characters; ++byte) {
      characters[byte] =
          spells_itself(static_cast<unsigned char>(byte)) ? static_cast<char32_t>(byte) : next++;
    }
    return characters;
  }();
  return alphabet;
}

// The byte that a character represents; -1 for none.
int byte_of(char32_t c) {
  if (c < 0x100) return spells_itself(static_cast<unsigned char>(c)) ? static_cast<int>(c) : -1;
  const auto& alphabet = byte_alphabet();
  for (size_t byte = 0; byte < byte_characters; ++byte) {
    if (alphabet[byte] == c) return static_cast<int>(byte);
  }
  return -1;
}

// character_kind() of ASCII: most characters of most texts.
constexpr std::array<CharacterKind, 128> ascii_kinds = [] {
  std::array<CharacterKind, 128> kinds{};
  for (size_t c = 0; c < kinds.size(); ++c) {
    const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z', space = c == ' ' || (c >= '\t' && c <= '\r');
    kinds[c] = letter                 ? CharacterKind::letter
               : c >= '0' && c <= '9' ? CharacterKind::number
               : space                ? CharacterKind::space
                                      : CharacterKind::other;
  }
  return kinds;
}();

// The kind of the character at `position`, which is advanced past it.
CharacterKind next_kind(std::string_view text, size_t& position) {
  if (!is_ascii(text[position])) return character_kind(next_code_point(text, position));
  return ascii_kinds[static_cast<unsigned char>(text[position++])];
}

// The length of the contraction at `position`, which is an apostrophe; 0 for none.
size_t contraction_at(std::string_view text, size_t position) {
  for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (text.substr(position + 1).starts_with(ending)) return 1 + ending.size();
  }
  return 0;
}

// The end of the run of characters of `kind` that begins at `position`; `last` becomes the beginning of its
// last character.
size_t end_of_run(std::string_view text, size_t position, CharacterKind kind, size_t& last) {
  while (position < text.size()) {
    size_t next = position;
    if (next_kind(text, next) != kind) break;
    last = position;
    position = next;
  }
  return position;
}

// The end of the word that begins at `begin`.
size_t end_of_word(std::string_view text, size_t begin) {
  size_t position = begin;
  size_t last = begin;
  if (text[begin] == '\'') {
    if (const size_t size = contraction_at(text, begin)) return begin + size;
  }
  const CharacterKind kind = next_kind(text, position);
  if (text[begin] == ' ' && position < text.size()) {
    const CharacterKind after = next_kind(text, position);
    if (after != CharacterKind::space) return end_of_run(text, position, after, last);
    position = begin + 1;
  }
  const size_t end = end_of_run(text, position, kind, last);
  if (kind != CharacterKind::space || end == text.size()) return end;
  return last > begin ? last : end;  // the last space belongs to the following word
}

void append_words(std::string_view text, std::vector<WordRange>& words) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = end_of_word(text, begin);
    words.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
}

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  for (size_t position = 0; position < token.size();) {
    const int byte = byte_of(next_code_point(token, position));
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::string token_of_byte(unsigned char byte) {
  std::string token;
  append_utf8(token, byte_alphabet()[byte]);
  return token;
}

void ByteLevelPreTokenizer::split(NormalizedText& text, NormalizedText& /*scratch*/,
                                  std::vector<WordRange>& words) const {
  if (add_prefix_space_ && text.bytes.front() != ' ') {
    text.bytes.insert(text.bytes.begin(), ' ');
    text.characters.insert(text.characters.begin(), text.characters.front());
  }
  append_words(text.bytes, words);
}

bool ByteLevelPreTokenizer::split_unchanged(std::string_view text, std::vector<WordRange>& words) const {
  if (add_prefix_space_ && text.front() != ' ') return false;
  append_words(text, words);
  return true;
}

std::string ByteLevelPreTokenizer::description() const {
  return add_prefix_space_ ? "byte level with prefix space\n" : "byte level\n";
}

}  // namespace stretto::text
