#pragma once

#include <filesystem>

namespace stretto {

// Without RENAME_EXCHANGE, replace_folder() (files.h) renames twice. In between, the old folder is at
// replaced_path(path), and there is none at `path`. A failed call renames it back; after the death of a
// process, restore_replaced() does.
std::filesystem::path replaced_path(const std::filesystem::path& path);

// Renames the old folder back if there is none at `path`. Throws IoError.
void restore_replaced(const std::filesystem::path& path);

}  // namespace stretto
