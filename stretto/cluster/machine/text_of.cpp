#include "stretto/cluster/machine/text_of.h"

#include "stretto/base/files.h"

namespace stretto::machine {

std::string text_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  try {
    return read_file(path);
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace stretto::machine
