#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto {

// The layers named by `layers`: numbers separated by commas, 0 for the embeddings' output and `count` or -1
// for that of the last of `count` layers, or "all"; from 0 to `count`, in their order. Throws ConfigError,
// which begins with `source`, for others.
std::vector<int64_t> layer_numbers(const std::string& layers, int64_t count, const std::string& source);

}  // namespace stretto
