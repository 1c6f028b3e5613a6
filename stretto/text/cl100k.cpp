#include "stretto/text/cl100k.h"

#include <limits>

#include <fmt/format.h>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

bool ends_line(char c) { return c == '\r' || c == '\n'; }

CharacterKind kind_at(std::string_view text, size_t position) {
  return character_kind(next_code_point(text, position));
}

// The end of the run of at most `longest` characters of `kind` that begins at `position`.
size_t end_of_kind(std::string_view text, size_t position, CharacterKind kind, int longest) {
  for (int count = 0; position < text.size() && count < longest; ++count) {
    size_t next = position;
    if (character_kind(next_code_point(text, next)) != kind) break;
    position = next;
  }
  return position;
}

constexpr int any_number = std::numeric_limits<int>::max();

// The lower-case letter, as far as contractions need it: U+017F is a long s.
char32_t folded(char32_t c) {
  if (c == 0x17F) return 's';
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

// The end of the contraction whose apostrophe is at `begin`; 0 for none.
size_t end_of_contraction(std::string_view text, size_t begin) {
  size_t position = begin + 1;
  if (position >= text.size()) return 0;
  const char32_t first = folded(next_code_point(text, position));
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return position;
  if (position >= text.size()) return 0;
  const char32_t second = folded(next_code_point(text, position));
  const bool is_one =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return is_one ? position : 0;
}

// The end of the white space that begins at `begin`, as a word.
size_t end_of_space(std::string_view text, size_t begin) {
  size_t last = begin, after_line = 0, position = begin;
  while (position < text.size()) {
    size_t next = position;
    if (character_kind(next_code_point(text, next)) != CharacterKind::space) break;
    last = position;
    if (ends_line(text[position])) after_line = next;
    position = next;
  }
  if (after_line > 0) return after_line;
  return position == text.size() || last == begin ? position : last;
}

// The end of the word that begins at `begin`: what each alternative of the regular expression matches, in
// their order.
size_t end_of_word_at(std::string_view text, size_t begin, int longest_number) {
  if (text[begin] == '\'') {
    if (const size_t end = end_of_contraction(text, begin)) return end;
  }
  size_t second = begin;
  const CharacterKind kind = character_kind(next_code_point(text, second));
  if (kind == CharacterKind::letter) return end_of_kind(text, second, CharacterKind::letter, any_number);
  if (kind == CharacterKind::number) return end_of_kind(text, begin, CharacterKind::number, longest_number);
  const bool has_second = second < text.size();
  if (!ends_line(text[begin]) && has_second && kind_at(text, second) == CharacterKind::letter)
    return end_of_kind(text, second, CharacterKind::letter, any_number);
  const bool leads = text[begin] == ' ' && has_second && kind_at(text, second) == CharacterKind::other;
  if (kind == CharacterKind::other || leads) {
    size_t end = end_of_kind(text, second, CharacterKind::other, any_number);
    while (end < text.size() && ends_line(text[end])) ++end;
    return end;
  }
  return end_of_space(text, begin);
}

}  // namespace

void Cl100kPreTokenizer::split(NormalizedText& text, NormalizedText& /*scratch*/,
                               std::vector<WordRange>& words) const {
  for (size_t begin = 0; begin < text.bytes.size();) {
    const size_t end = end_of_word_at(text.bytes, begin, longest_number_);
    words.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = end;
  }
}

std::string Cl100kPreTokenizer::description() const { return fmt::format("cl100k {}\n", longest_number_); }

}  // namespace stretto::text
