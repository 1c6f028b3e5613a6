#pragma once

#include <filesystem>
#include <utility>
#include <vector>

namespace stretto {

// A folder that is made before it is known whether anything will stay in it. With this object it is removed,
// together with the parents that were made for it, unless they hold something by then. Other processes may
// use the same folders.
class NewFolder {
 public:
  // Makes the folder and its parents, where they are missing. Throws IoError.
  explicit NewFolder(const std::filesystem::path& folder);
  NewFolder(NewFolder&& other) noexcept : made_(std::exchange(other.made_, {})) {}
  NewFolder& operator=(NewFolder&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~NewFolder();

 private:
  std::vector<std::filesystem::path> made_;  // the innermost first
};

}  // namespace stretto
