#pragma once

#include <filesystem>

namespace stretto {

// The folder for files that any run of this user can recreate: $XDG_CACHE_HOME/stretto, else
// $HOME/.cache/stretto, see the XDG Base Directory Specification. Empty if neither variable is set. Does not
// create it.
std::filesystem::path user_cache_folder();

}  // namespace stretto
