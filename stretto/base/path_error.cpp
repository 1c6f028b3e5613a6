#include "stretto/base/path_error.h"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

namespace stretto {

void fail_to_create(int reason, const std::string& message) {
  switch (reason) {
    case ENOENT:  // the parent exists, but accepts no folders, such as /proc
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ENAMETOOLONG:
    case ELOOP:
      throw PathError("{}: {}", message, std::strerror(reason));
    default:
      throw IoError("{}: {}", message, std::strerror(reason));
  }
}

void require_file_path(const std::filesystem::path& path) {
  const std::string message = "cannot write " + path.string();
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  struct stat info {};
  if (::access((folder / "").c_str(), W_OK | X_OK) != 0) fail_to_create(errno, message);
  if (::stat(path.c_str(), &info) != 0 && errno != ENOENT) fail_to_create(errno, message);
  if (S_ISDIR(info.st_mode)) fail_to_create(EISDIR, message);
}

}  // namespace stretto
