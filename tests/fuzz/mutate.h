#pragma once

#include <random>
#include <string>

namespace stretto::fuzz {

// Makes one to eight random changes to `input`: bits, bytes, numbers at the limits of their types, pieces
// repeated, dropped, moved or taken from `other`, and words that parsers treat specially. The result has at
// most `max_bytes`.
std::string mutate(std::string input, const std::string& other, size_t max_bytes, std::mt19937_64& random);

}  // namespace stretto::fuzz
