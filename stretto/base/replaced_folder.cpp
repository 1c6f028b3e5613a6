#include "stretto/base/replaced_folder.h"

#include "stretto/base/files.h"

namespace stretto {
namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

}  // namespace

std::filesystem::path replaced_path(const std::filesystem::path& path) {
  std::filesystem::path old = path.has_filename() ? path : path.parent_path();
  return old += ".old";
}

void restore_replaced(const std::filesystem::path& path) {
  const std::filesystem::path old = replaced_path(path);
  if (!is_there(path) && is_there(old)) rename_folder(old, path);
}

}  // namespace stretto
