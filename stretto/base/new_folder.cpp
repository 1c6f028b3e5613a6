#include "stretto/base/new_folder.h"

#include <cerrno>

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

std::vector<std::filesystem::path> missing_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code ignored;
  for (auto path = std::filesystem::absolute(folder); !std::filesystem::exists(path, ignored);
       path = path.parent_path()) {
    if (!path.has_relative_path()) break;
    if (path.has_filename()) missing.push_back(path);  // "a/b/" is "a/b", its parent
  }
  return missing;
}

}  // namespace

NewFolder::NewFolder(const std::filesystem::path& folder) : made_(missing_folders(folder)) {
  for (int attempt = 1;; ++attempt) {
    try {
      make_folders(folder);
      return;
    } catch (const IoError&) {  // perhaps another process has removed a parent at this moment, as below
      if (attempt == 3) throw;
    }
  }
}

NewFolder::~NewFolder() {
  for (const auto& folder : made_) {
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) return;
  }
}

}  // namespace stretto
