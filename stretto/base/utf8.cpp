#include "stretto/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace stretto {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

struct ByteSequence {
  size_t size;  // bytes taken
  bool valid;
};

// The range of the byte after `lead` in Unicode's table 3-7, and the total number of following bytes.
struct Trail {
  int count;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Trail trail_of(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {1};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};
  if (lead == 0xED) return {2, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {2};
  if (lead == 0xF0) return {3, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {3};
  if (lead == 0xF4) return {3, 0x80, 0x8F};
  return {0};
}

// The code point or the maximal invalid subpart at `position`.
ByteSequence sequence_at(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(position) < 0x80) return {1, true};
  const Trail trail = trail_of(byte(position));
  if (trail.count == 0) return {1, false};
  for (int i = 1; i <= trail.count; ++i) {
    const size_t at = position + i;
    const unsigned char low = i == 1 ? trail.low : 0x80;
    const unsigned char high = i == 1 ? trail.high : 0xBF;
    if (at >= text.size() || byte(at) < low || byte(at) > high) return {static_cast<size_t>(i), false};
  }
  return {static_cast<size_t>(trail.count) + 1, true};
}

// The first byte at or after `position` that is not ASCII.
size_t skip_ascii(std::string_view text, size_t position) {
  for (; position + 8 <= text.size(); position += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + position, 8);
    if (word & 0x8080808080808080) break;
  }
  while (position < text.size() && static_cast<unsigned char>(text[position]) < 0x80) ++position;
  return position;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  size_t position = 0;
  while ((position = skip_ascii(text, position)) < text.size()) {
    const ByteSequence sequence = sequence_at(text, position);
    if (!sequence.valid) break;
    position += sequence.size;
  }
  return position;
}

std::string_view replace_invalid_utf8(std::string_view text, std::string& buffer) {
  size_t position = find_invalid_utf8(text);
  if (position == text.size()) return text;
  buffer.assign(text.substr(0, position));
  while (position < text.size()) {
    const ByteSequence sequence = sequence_at(text, position);
    if (sequence.valid) {
      buffer.append(text.substr(position, sequence.size));
    } else {
      buffer.append(replacement);
    }
    position += sequence.size;
  }
  return buffer;
}

std::string_view cut_utf8(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  const auto continues = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  while (most > 0 && continues(most)) --most;
  return text.substr(0, most);
}

}  // namespace stretto
