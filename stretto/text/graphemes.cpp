#include "stretto/text/graphemes.h"

#include <utf8proc.h>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// U+FFF0 to U+FFF8, reserved for format characters, count as control characters, but not in utf8proc.
bool is_reserved_control(char32_t c) { return c >= 0xFFF0 && c <= 0xFFF8; }

bool is_control_or_line_end(char32_t c) {
  const auto boundary = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->boundclass;
  return boundary == UTF8PROC_BOUNDCLASS_CONTROL || boundary == UTF8PROC_BOUNDCLASS_CR ||
         boundary == UTF8PROC_BOUNDCLASS_LF;
}

}  // namespace

size_t end_of_grapheme(std::string_view text, size_t begin) {
  size_t position = begin;
  char32_t before = next_code_point(text, position);
  utf8proc_int32_t state = 0;
  while (position < text.size()) {
    size_t next = position;
    const char32_t c = next_code_point(text, next);
    const bool break_before = utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                               static_cast<utf8proc_int32_t>(c), &state);
    if (is_reserved_control(before) || is_reserved_control(c)) break;
    if (extends_grapheme_later(c) ? is_control_or_line_end(before) : break_before) break;
    before = c;
    position = next;
  }
  return position;
}

}  // namespace stretto::text
