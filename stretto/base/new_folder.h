#pragma once

#include <filesystem>
#include <utility>
#include <vector>

namespace stretto {

// A folder that is created before it is known whether it will be used. The destructor removes it, and the
// parents that were created for it, if they are empty. Other processes may use the same folders.
class NewFolder {
 public:
  // Creates the folder and its parents where they are missing. Throws IoError.
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
