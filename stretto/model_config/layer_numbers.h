#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto {

// Parses `layers`: "all", or numbers separated by commas, where 0 is the embeddings' output and `count` or -1
// the output of the last of `count` layers. Returns numbers from 0 to `count`, in their order. Throws
// ConfigError, which begins with `source`, for other text.
std::vector<int64_t> layer_numbers(const std::string& layers, int64_t count, const std::string& source);

}  // namespace stretto
