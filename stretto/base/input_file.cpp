#include "stretto/base/input_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/error.h"

namespace stretto {

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // A pipe without a writer must not block.
  fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd_ || ::fstat(fd_.get(), &info) != 0)
    throw IoError("cannot read {}: {}", path_.string(), std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    throw IoError("cannot read {}: it is not a regular file; expected a file", path_.string());
  size_ = info.st_size;
}

void InputFile::read(int64_t offset, std::span<char> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(fd_.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("cannot read {}: {}", path_.string(), std::strerror(errno));
    if (got == 0) {
      throw IoError("cannot read {}: it ends before byte {}; it is truncated", path_.string(),
                    offset + static_cast<int64_t>(bytes.size()));
    }
    done += static_cast<size_t>(got);
  }
}

}  // namespace stretto
