#include <utf8proc.h>

#include "stretto/metrics/squad.h"
#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

// Reimplements Python's str.lower, string.punctuation, re's \b and str.split.
namespace stretto::metrics {
namespace {

constexpr char32_t capital_sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2;

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_cased(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(char32_t c) {
  if (c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019) return true;
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK;
}

// Unicode's condition Final_Sigma: after a cased letter and not before one.
bool ends_word(const std::u32string& text, size_t at) {
  size_t before = at, after = at + 1;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return before > 0 && is_cased(text[before - 1]) && (after == text.size() || !is_cased(text[after]));
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_space(char32_t c) { return text::is_whitespace(c) || (c >= 0x1C && c <= 0x1F); }

bool is_word(char32_t c) {
  const auto kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) ||
         (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

std::u32string lower_without_punctuation(std::string_view text) {
  std::u32string points, result;
  for (size_t i = 0; i < text.size();) points += text::next_code_point(text, i);
  for (size_t i = 0; i < points.size(); ++i) {
    if (is_ascii_punctuation(points[i])) continue;
    if (points[i] == capital_sigma) {
      result += ends_word(points, i) ? final_sigma : small_sigma;
      continue;
    }
    const text::CodePoints lower = text::lower_case(points[i]);
    result.append(lower.values.begin(), lower.values.begin() + lower.size);
  }
  return result;
}

}  // namespace

std::string normalize_answer(std::string_view original) {
  std::string buffer;
  std::u32string text = lower_without_punctuation(text::replace_invalid_utf8(original, buffer));
  for (size_t begin = 0; begin < text.size();) {  // articles become spaces
    size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::u32string_view word(text.data() + begin, end - begin);
    if (word == U"a" || word == U"an" || word == U"the")
      std::fill_n(text.begin() + static_cast<int64_t>(begin), end - begin, U' ');
    begin = end + (end == begin);
  }
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_space(text[i])) continue;
    if (!result.empty() && i > 0 && is_space(text[i - 1])) result += ' ';
    text::append_utf8(result, text[i]);
  }
  return result;
}

}  // namespace stretto::metrics
