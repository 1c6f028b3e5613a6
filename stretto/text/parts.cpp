#include "stretto/text/parts.h"

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// Whether the text before `end` ends with a character other than white space, or with an invalid byte.
bool ends_other_than_space(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && !is_lead_byte(text[begin])) --begin;
  const std::string_view last = text.substr(begin, end - begin);
  if (!is_utf8(last)) return true;
  size_t position = 0;
  const char32_t c = next_code_point(last, position);
  return position < last.size() || !is_whitespace(c);
}

}  // namespace

bool may_cut(std::string_view text, size_t position) {
  return position > 0 && text[position] == ' ' && ends_other_than_space(text, position);
}

size_t last_cut(std::string_view text) {
  size_t position = text.size();
  while ((position = text.substr(0, position).rfind(' ')) != std::string_view::npos) {
    if (may_cut(text, position)) return position;
  }
  return 0;
}

}  // namespace stretto::text
