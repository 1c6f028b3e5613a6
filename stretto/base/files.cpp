#include "stretto/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "stretto/base/error.h"

namespace stretto {
namespace {

[[noreturn]] void fail(const char* verb, const std::filesystem::path& path) {
  throw IoError("cannot {} {}: {}", verb, path.string(), std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags, const char* verb) : path_(path) {
    fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd_ < 0) fail(verb, path);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  size_t size() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) fail("read", path_);
    if (S_ISDIR(info.st_mode)) throw IoError("cannot read {}: it is a folder, a file is needed", path_.string());
    return static_cast<size_t>(info.st_size);
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("fsync", path_);
  }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

void write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("write", path);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY, "read");
  std::string content;
  content.reserve(file.size());
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.fd(), chunk, sizeof chunk);
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      fail("read", path);
    }
    content.append(chunk, static_cast<size_t>(got));
  }
}

void write_file_atomic(const std::filesystem::path& path, const std::function<void(const WritePiece&)>& fill) {
  std::filesystem::path aside = path;
  aside += ".tmp" + std::to_string(::getpid());
  try {
    Descriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC, "write");
    fill([&](std::string_view piece) { write_all(file.fd(), piece, aside); });
    file.sync();
    if (::rename(aside.c_str(), path.c_str()) != 0) fail("write", path);
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  Descriptor(folder, O_RDONLY | O_DIRECTORY, "fsync").sync();
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  write_file_atomic(path, [&](const WritePiece& write) { write(content); });
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError("cannot make the folder {}: {}", folder.string(), error.message());
}

void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    if (::rename(fresh.c_str(), path.c_str()) != 0) fail("write", path);
    return;
  }
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    std::filesystem::remove_all(fresh);
    return;
  }
  std::filesystem::path old = path;
  old += ".old";
  std::filesystem::remove_all(old);
  if (::rename(path.c_str(), old.c_str()) != 0 || ::rename(fresh.c_str(), path.c_str()) != 0) fail("write", path);
  std::filesystem::remove_all(old);
}

std::filesystem::path expand_home(const std::string& path) {
  if (path != "~" && path.rfind("~/", 0) != 0) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr) throw ConfigError("{}: HOME is not set, so \"~\" has no meaning; write the whole path", path);
  return std::string(home) + path.substr(1);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY, "read");
  size_ = file.size();
  if (size_ == 0) return;
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    fail("map", path);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

AppendFile::AppendFile(const std::filesystem::path& path, bool keep_old) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep_old ? 0 : O_TRUNC), 0644);
  if (fd_ < 0) fail("write", path);
}

AppendFile::~AppendFile() { ::close(fd_); }

void AppendFile::write(std::string_view bytes) { write_all(fd_, bytes, path_); }

}  // namespace stretto
