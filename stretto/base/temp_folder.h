#pragma once

#include <cstdlib>
#include <filesystem>

#include "stretto/base/error.h"

namespace stretto {

// A new empty folder under the system's folder for temporary files, removed with all it holds at the end of the scope.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stretto-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw IoError("cannot make a temporary folder like {}", name);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stretto
