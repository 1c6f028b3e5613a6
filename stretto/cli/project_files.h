#pragma once

#include <string_view>
#include <vector>

namespace stretto::cli {

// A file of the project that `stretto new` writes; in its text @NAME@ stands for the project's name.
struct ProjectFile {
  std::string_view name;
  std::string_view text;
};

// The files of cli/project/, compiled in. cmake/Layers.cmake writes this function.
std::vector<ProjectFile> project_files();

}  // namespace stretto::cli
