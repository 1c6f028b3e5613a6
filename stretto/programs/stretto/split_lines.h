#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "stretto/compat/hf_script.h"

namespace stretto::cli {

// Writes the two parts of plan.split_file, if there is one: its first plan.split_percentage percent of lines
// as the validation file, rounded like datasets' split "train[:5%]", and the others as the training file.
// Files that already have this content are not rewritten. Throws ConfigError if a part would be empty,
// IoError.
void split_lines(const compat::ScriptPlan& plan);

// The validation file and the training file that it writes; none without plan.split_file.
std::vector<std::filesystem::path> parts_of_split_file(const compat::ScriptPlan& plan);

// Writes the file unless it has this content already. Throws IoError.
void write_if_changed(const std::filesystem::path& path, std::string_view content);

}  // namespace stretto::cli
