#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace stretto {

// Every write of stretto goes through this file. All functions throw IoError with the path and the system's reason.

// The whole file as bytes.
std::string read_file(const std::filesystem::path& path);

// Writes `content` so that `path` holds either its old or its whole new content, whatever happens meanwhile:
// a temporary file beside it, fsync, rename, fsync of the folder.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// As write_file_atomic, for content made in pieces: `fill` calls its argument once a piece, in order.
using WritePiece = std::function<void(std::string_view)>;
void write_file_atomic(const std::filesystem::path& path, const std::function<void(const WritePiece&)>& fill);

// Makes `folder` and its parents.
void make_folders(const std::filesystem::path& folder);

// Puts the finished folder `fresh` in the place of `path`, in one step where the file system can exchange names; what was
// there before is removed afterwards.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& path);

// "~" and "~/x" with the home folder in place of "~"; anything else unchanged.
std::filesystem::path expand_home(const std::string& path);

// A file mapped read-only. Movable; the bytes stay valid while the object lives.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  size_t size() const { return size_; }

 private:
  void swap(MappedFile& other) noexcept;

  void* data_ = nullptr;
  size_t size_ = 0;
};

// An open file that only grows: log files and JSON lines. A line is written whole or the call throws.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path, bool keep_old = true);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  void write(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace stretto
