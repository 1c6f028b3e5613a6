#pragma once

#include <filesystem>

namespace stretto {

// "<path>.tmp<pid>-<host>-<64 random bits>": unpredictable, so that nobody can create a link under it
// beforehand.
std::filesystem::path temporary_name(const std::filesystem::path& path);

// Removes temporary files in `folder` that were written by processes of this host which no longer run.
// Ignores errors.
void remove_abandoned(const std::filesystem::path& folder);

}  // namespace stretto
