#include "stretto/base/path_error.h"

#include <cerrno>
#include <cstring>

namespace stretto {

void fail_to_create(int reason, const std::string& message) {
  switch (reason) {
    case ENOENT:  // the parent exists, but accepts no folders, such as /proc
    case ENOTDIR:
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

}  // namespace stretto
