#pragma once

#include <filesystem>

namespace stretto::cli {

// The folder that contains bin/stretto: the prefix of an installation, a build folder, or the Python package
// stretto.
std::filesystem::path own_prefix();

// own_prefix() if it contains stretto's CMake package; empty if the program was moved out of it.
std::filesystem::path cmake_prefix();

// Checks the libtorch of the Python package, whose programs load that of the package torch in the same
// site-packages. Throws ConfigError if there is none, or if its version differs from this build's. Does
// nothing for other prefixes.
void require_torch(const std::filesystem::path& prefix);

}  // namespace stretto::cli
