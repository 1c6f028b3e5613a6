#pragma once

#include <filesystem>

namespace stretto {

// "<path>.tmp<pid>-<host>-<64 random bits>": a name that nobody can have put a link under beforehand.
std::filesystem::path temporary_name(const std::filesystem::path& path);

// Removes files of such names in `folder` whose process of this host no longer runs: it was killed while it wrote them.
// What cannot be listed or removed is left.
void remove_abandoned(const std::filesystem::path& folder);

}  // namespace stretto
