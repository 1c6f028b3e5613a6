#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stretto {

// XXH3, 64 bits (https://xxhash.com). Not cryptographic.
uint64_t hash64(std::string_view bytes, uint64_t seed = 0);

// A hash of `values`, which depends on their order.
uint64_t hash64(std::span<const uint64_t> values);

// CRC-32C (Castagnoli; RFC 3720, appendix B.4), for formats that require it.
uint32_t crc32c(std::string_view bytes);

// XXH3, 128 bits, as 32 hexadecimal digits: names for cached content.
std::string hash128_hex(std::string_view bytes);

// Two lower-case hexadecimal digits per byte.
std::string to_hex(std::string_view bytes);

// Whether `text` consists of `digits` lower-case hexadecimal digits.
bool is_hex(std::string_view text, size_t digits);

}  // namespace stretto
