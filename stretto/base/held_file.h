#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/file_writer.h"

namespace stretto {

// A log file that may be held: nothing is written, and neither it nor its folder is made, until release(). A
// run that is refused before that leaves the log of an earlier run as it was. What is held is lost with this
// object; beyond 1 MiB it is released.
class HeldFile {
 public:
  // Unless it is held, throws IoError where the file cannot be opened.
  HeldFile(std::filesystem::path path, bool hold);

  void write(std::string_view bytes);  // throws IoError
  void release();                      // what follows is written at once. Throws IoError

 private:
  std::filesystem::path path_;
  std::optional<AppendFile> file_;  // none while held
  std::string held_;
};

}  // namespace stretto
