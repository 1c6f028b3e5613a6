#include "stretto/text/utf8.h"

#include <algorithm>

namespace stretto::text {

size_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), is_lead_byte);
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto push = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | code_point >> 6);
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | code_point >> 12);
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | code_point >> 18);
    push(0x80 | (code_point >> 12 & 0x3F));
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

}  // namespace stretto::text
