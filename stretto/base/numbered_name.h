#pragma once

#include <filesystem>

namespace stretto {

// A free name for what is kept next to what was kept before: "<path>-1", or the number after the highest that
// is there.
std::filesystem::path next_numbered(const std::filesystem::path& path);

}  // namespace stretto
