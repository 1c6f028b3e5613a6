#pragma once

#include <random>
#include <string>

namespace stretto::fuzz {

// One to eight random changes of `input`: bits, bytes, numbers at the edges of their types, pieces repeated,
// dropped, moved or taken from `other`, and words that parsers treat in a special way. The result has at most
// `max_bytes`.
std::string mutate(std::string input, const std::string& other, size_t max_bytes, std::mt19937_64& random);

}  // namespace stretto::fuzz
