#pragma once

#include <filesystem>

namespace stretto {

// An unused path: "<path>-1", or the number after the highest one that exists.
std::filesystem::path next_numbered(const std::filesystem::path& path);

}  // namespace stretto
