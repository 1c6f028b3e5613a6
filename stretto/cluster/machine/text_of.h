#pragma once

#include <filesystem>
#include <string>

namespace stretto::machine {

// The file's text, or "" where it cannot be read: what it would report is then unknown.
std::string text_of(const std::filesystem::path& path);

}  // namespace stretto::machine
