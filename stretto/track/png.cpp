#include "stretto/track/png.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace stretto {
namespace {

void append_big_endian(std::string& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
}

uint32_t crc32_of(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320U ^ (value >> 1) : value >> 1;
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t adler32_of(std::string_view bytes) {
  uint32_t low = 1, high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<uint8_t>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

void append_chunk(std::string& file, const std::string& type, const std::string& data) {
  append_big_endian(file, static_cast<uint32_t>(data.size()));
  append_big_endian(file += type + data, crc32_of(type + data));
}

// A zlib stream (RFC 1950) of stored blocks.
std::string stored(const std::string& bytes) {
  constexpr size_t largest = 65535;
  std::string stream = "\x78\x01";
  for (size_t begin = 0; begin < bytes.size(); begin += largest) {
    const size_t size = std::min(largest, bytes.size() - begin);
    stream += static_cast<char>(begin + size == bytes.size());
    for (const size_t number : {size, ~size}) {
      stream += static_cast<char>(number & 0xff);
      stream += static_cast<char>(number >> 8 & 0xff);
    }
    stream.append(bytes, begin, size);
  }
  append_big_endian(stream, adler32_of(bytes));
  return stream;
}

}  // namespace

std::string encode_png(const Image& image) {
  std::string header;
  append_big_endian(header, static_cast<uint32_t>(image.width));
  append_big_endian(header, static_cast<uint32_t>(image.height));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits per channel, RGB
  std::string rows;
  const size_t row_size = static_cast<size_t>(image.width) * 3;
  for (int row = 0; row < image.height; ++row) {
    rows += '\0';  // no filter
    rows.append(image.pixels, static_cast<size_t>(row) * row_size, row_size);
  }
  std::string file = "\x89PNG\r\n\x1a\n";
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", stored(rows));
  append_chunk(file, "IEND", "");
  return file;
}

}  // namespace stretto
