#include "stretto/base/numbered_name.h"

#include <algorithm>

#include "stretto/base/strings.h"

namespace stretto {

std::filesystem::path next_numbered(const std::filesystem::path& path) {
  const std::string stem = path.filename().string() + "-";
  long long highest = 0;
  std::error_code none;  // there is no such folder yet
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem))
      highest = std::max(highest, parse_int(std::string_view(name).substr(stem.size())).value_or(0));
  }
  return path.parent_path() / (stem + std::to_string(highest + 1));
}

}  // namespace stretto
