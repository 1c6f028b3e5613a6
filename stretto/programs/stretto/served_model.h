#pragma once

#include <filesystem>

namespace stretto::cli {

// Checks of verbs that run a model, before libtorch is loaded. They throw ConfigError, which names the
// option.

// --model: a folder, or a name of the hub's cache.
void require_model_folder(const std::filesystem::path& model);

// --input: a file, or "-".
void require_input_file(const std::filesystem::path& file);

}  // namespace stretto::cli
