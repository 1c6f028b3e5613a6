#pragma once

#include <string_view>
#include <vector>

namespace stretto::cli {

// A file of the project that `stretto new` writes; @NAME@ in its text is replaced by the project's name.
struct ProjectFile {
  std::string_view name;
  std::string_view text;
};

// The files of project/, embedded in the program. cmake/Layers.cmake generates this function.
std::vector<ProjectFile> project_files();

}  // namespace stretto::cli
