#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "stretto/base/fd.h"

namespace stretto {

// Every write of stretto goes through this file. All functions throw IoError with the path and the system's
// reason. What is said of failures is tested with a fault at each system call: file_faults.h.

// The whole file as bytes.
std::string read_file(const std::filesystem::path& path);

// Writes `content` so that `path` holds either its old or its whole new content, whatever happens meanwhile:
// a temporary file beside it, fsync, rename, fsync of the folder.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// As write_file_atomic, for content made in pieces: `fill` calls its argument once a piece, in order.
using WritePiece = std::function<void(std::string_view)>;
void write_file_atomic(const std::filesystem::path& path, const std::function<void(const WritePiece&)>& fill);

// A new file, written from front to back, for content that is too big to hold. finish() makes it last;
// destroyed before that, it takes the file away again. It is not atomic: a file that must be whole or absent
// is written into a folder of another name and gets its place with rename_folder.
class FileWriter {
 public:
  // Creates the file, or empties the one that is there.
  explicit FileWriter(const std::filesystem::path& path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes);
  int64_t size() const { return size_; }  // bytes written so far: the offset of the next one
  void finish();                          // fsync and close. REQUIRES: not finished before

 private:
  std::filesystem::path path_;
  Fd fd_;
  int64_t size_ = 0;
};

// Makes `folder` and its parents.
void make_folders(const std::filesystem::path& folder);

// Makes the names in `folder` last: a file that was made, renamed or removed there stays so after a power
// failure.
void sync_folder(const std::filesystem::path& folder);

// Gives the folder `from` the name `to` in one step, and makes that last. Throws, and changes nothing, where
// something stands under `to` already. When it is the last fsync that fails, `to` is there all the same.
void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes `folder` and all in it, so that what is half removed never has its name: it becomes
// "<folder>.removing" first. A process that dies meanwhile leaves that, which the next remove_folder of the
// same name takes along. Nothing to remove is no error.
void remove_folder(const std::filesystem::path& folder);

// Puts the finished folder `fresh` in the place of `path`, in one step where the file system can exchange
// names; what was there before is removed afterwards.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& path);

// "~" and "~/x" with the home folder in place of "~"; anything else unchanged.
std::filesystem::path expand_home(const std::string& path);

// A file mapped read-only. Movable; the bytes stay valid while the object lives.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);

  // May be written to, which changes this mapping only and never the file.
  static MappedFile copy_on_write(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  std::byte* mutable_data() { return static_cast<std::byte*>(data_); }  // REQUIRES: copy_on_write()
  size_t size() const { return size_; }

 private:
  MappedFile(const std::filesystem::path& path, int protection);
  void swap(MappedFile& other) noexcept;

  void* data_ = nullptr;
  size_t size_ = 0;
};

// An open file that only grows: log files and JSON lines. Bytes given to write() are in the file whole or,
// when it throws, not at all. REQUIRES: nobody else writes to the file.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path, bool keep_old = true);

  void write(std::string_view bytes);

 private:
  std::filesystem::path path_;
  Fd fd_;
};

}  // namespace stretto
