#pragma once

#include <string>
#include <string_view>

namespace stretto::cluster {

// `bytes` random bytes of the operating system's generator. Throws IoError.
std::string random_bytes(size_t bytes);

// A new secret for one job: 32 random bytes as 64 hexadecimal digits.
std::string make_secret();

// HMAC-SHA256 (RFC 2104) of `message` under `secret`: a 32-byte proof of knowledge of the secret that does
// not reveal it.
std::string prove(std::string_view secret, std::string_view message);

// Compares two byte strings in a time that depends on their lengths only.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace stretto::cluster
