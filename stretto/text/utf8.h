#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stretto::text {

// The code point at `position`, which is moved behind it. REQUIRES: `text` is valid UTF-8, position <
// text.size().
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

// How many code points `text` has. REQUIRES: valid UTF-8.
size_t count_code_points(std::string_view text);

// REQUIRES: a code point up to U+10FFFF.
void append_utf8(std::string& out, char32_t code_point);

// The position of the first byte that does not begin a valid code point; text.size() where there is none.
size_t find_invalid_utf8(std::string_view text);

// `text` itself when it is valid UTF-8; else `buffer`, filled with a copy where each maximal invalid subpart
// (Unicode 15, section 3.9, table 3-8) is U+FFFD, as Python's bytes.decode(errors="replace") does.
std::string_view replace_invalid_utf8(std::string_view text, std::string& buffer);

}  // namespace stretto::text
