#include "stretto/base/hash.h"

#include <array>

#include <fmt/format.h>
#include <xxhash.h>

namespace stretto {
namespace {

constexpr std::array<uint32_t, 256> crc32c_table = [] {
  constexpr uint32_t polynomial = 0x82f63b78;  // 0x1edc6f41, its bits reversed
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? polynomial : 0);
    table[byte] = rest;
  }
  return table;
}();

}  // namespace

uint64_t hash64(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t hash64(std::span<const uint64_t> values) { return XXH3_64bits(values.data(), values.size_bytes()); }

uint32_t crc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (const char byte : bytes) rest = rest >> 8 ^ crc32c_table[(rest ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~rest;
}

std::string hash128_hex(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return hex;
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace stretto
