#pragma once

#include <filesystem>

namespace stretto::cli {

// The folder that contains bin/stretto: the prefix of an installation, a build folder, or the Python package stretto.
std::filesystem::path own_prefix();

// The same if it contains stretto's CMake package; empty if the program was moved out of it.
std::filesystem::path cmake_prefix();

// The Python package contains no libtorch: its programs load that of the package torch in the same site-packages. Throws
// ConfigError if there is none, or one of another version than this build's. Does nothing for other prefixes.
void require_torch(const std::filesystem::path& prefix);

}  // namespace stretto::cli
