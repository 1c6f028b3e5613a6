#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "stretto/base/utf8.h"

namespace stretto::text {

using stretto::find_invalid_utf8;
using stretto::replace_invalid_utf8;

// Returns the code point at `position` and moves `position` after it. REQUIRES: `text` is valid UTF-8,
// position < text.size().
inline char32_t next_code_point(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t lead = byte(position++);
  if (lead < 0x80) return lead;
  const auto trail = [&] { return static_cast<char32_t>(byte(position++) & 0x3F); };
  if (lead < 0xE0) return (lead & 0x1F) << 6 | trail();
  if (lead < 0xF0) {
    const char32_t high = (lead & 0x0F) << 12 | trail() << 6;
    return high | trail();
  }
  const char32_t high = (lead & 0x07) << 18 | trail() << 12;
  const char32_t middle = trail() << 6;
  return high | middle | trail();
}

inline bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Whether `c` starts a code point of valid UTF-8.
inline bool is_lead_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The number of code points of `text`. REQUIRES: valid UTF-8.
size_t count_code_points(std::string_view text);

// Appends a code point as UTF-8. REQUIRES: code_point <= U+10FFFF.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace stretto::text
