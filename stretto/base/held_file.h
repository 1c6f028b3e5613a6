#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/file_writer.h"

namespace stretto {

// A log file whose output can be held back. Until release(), lines are kept in memory, and neither the file
// nor its folder is created, so that a run that fails its checks leaves the log of an earlier run unchanged.
// The destructor discards held lines; more than 1 MiB of them are released.
class HeldFile {
 public:
  // Throws IoError if the file cannot be opened, unless `hold`.
  HeldFile(std::filesystem::path path, bool hold);

  void write(std::string_view bytes);  // throws IoError
  bool is_held() const { return !file_; }
  void release();  // later lines are written at once. Throws IoError

 private:
  std::filesystem::path path_;
  std::optional<AppendFile> file_;  // empty while lines are held back
  std::string held_;
};

}  // namespace stretto
