#include "stretto/base/file_writer.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/file_calls.h"

namespace stretto {

using file_calls::change, file_calls::fail, file_calls::sync;

namespace {

// Returns -1 and sets errno if the file cannot be opened.
Fd try_open_to_write(const std::filesystem::path& path, int flags) {
  return Fd(change("open", path,
                   [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644); }));
}

Fd open_to_write(const std::filesystem::path& path, int flags) {
  Fd file = try_open_to_write(path, flags);
  if (!file) fail("write", path);
  return file;
}

// Always creates a new file: an existing file or link of this name is removed, and never written through.
Fd create_file(const std::filesystem::path& path) {
  constexpr int flags = O_EXCL | O_NOFOLLOW;
  Fd file = try_open_to_write(path, flags);
  if (!file && errno == EEXIST) {
    if (change("unlink", path, [&] { return ::unlink(path.c_str()); }) != 0) fail("write", path);
    file = try_open_to_write(path, flags);
  }
  if (!file) fail("write", path);
  return file;
}

// Returns the number of bytes written: all, or fewer with the reason in errno.
size_t write_some(const Fd& file, std::string_view bytes, const std::filesystem::path& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = file_faults::call("write", path, bytes.size() - done, [&](size_t size) {
      return ::write(file.get(), bytes.data() + done, size);
    });
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace

FileWriter::FileWriter(const std::filesystem::path& path) : path_(path), fd_(create_file(path)) {}

FileWriter::~FileWriter() {
  if (fd_) change("unlink", path_, [this] { return ::unlink(path_.c_str()); });
}

void FileWriter::write(std::string_view bytes) {
  const size_t written = write_some(fd_, bytes, path_);
  size_ += static_cast<int64_t>(written);
  if (written < bytes.size()) fail("write", path_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void FileWriter::skip(int64_t bytes) {
  if (change("lseek", path_, [&] { return ::lseek(fd_.get(), bytes, SEEK_CUR); }) < 0) fail("write", path_);
  size_ += bytes;
}

void FileWriter::finish() {
  sync(fd_, path_);
  fd_.reset();  // after fsync, close cannot lose data
}

AppendFile::AppendFile(const std::filesystem::path& path, bool keep_old)
    : path_(path), fd_(open_to_write(path, O_APPEND | (keep_old ? 0 : O_TRUNC))) {}

void AppendFile::write(std::string_view bytes) {
  const size_t written = write_some(fd_, bytes, path_);
  if (written == bytes.size()) return;
  const int reason = errno;
  struct stat info {};
  if (written > 0 && ::fstat(fd_.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    const off_t before = info.st_size - static_cast<off_t>(written);
    change("ftruncate", path_, [&] { return ::ftruncate(fd_.get(), before); });
  }
  errno = reason;
  fail("write", path_);
}

}  // namespace stretto
