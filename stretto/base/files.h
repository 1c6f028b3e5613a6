#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace stretto {

// Files and folders as a whole; file_writer.h writes files piece by piece. Functions throw IoError with the
// path and the system's reason. Their behaviour on failures is tested with a fault at each system call:
// file_faults.h.

// The content of a file, or of a pipe, such as a recipe from another program. Files that belong to a model
// are read with MappedFile, which refuses pipes: several processes read them, some more than once.
std::string read_file(const std::filesystem::path& path);

// Like read_file, but returns "" if there is no such file.
std::string read_if_exists(const std::filesystem::path& path);

// Like read_file, but returns "" if the file is missing or cannot be read; meant for /proc and /sys.
std::string read_if_readable(const std::filesystem::path& path);

// Writes `content` atomically and durably: after any failure `path` has either its old or its new content. (A
// temporary file in the same folder, fsync, rename, fsync of the folder.)
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// Like write_file_atomic, for content in pieces: `fill` calls its argument once per piece, in order.
using WritePiece = std::function<void(std::string_view)>;
void write_file_atomic(const std::filesystem::path& path, const std::function<void(const WritePiece&)>& fill);

// Creates `folder` and its parents.
void make_folders(const std::filesystem::path& folder);

// Makes the entries of `folder` durable: files created, renamed or removed in it remain so after a power
// failure.
void sync_folder(const std::filesystem::path& folder);

// Renames the folder `from` to `to` atomically and durably. Throws, and changes nothing, if `to` exists. If
// only the final fsync fails, `to` exists nevertheless.
void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes `folder` recursively. It is first renamed to "<folder>.removing", so that a partially removed
// folder never has its name. If the process dies, that folder remains, and the next remove_folder of the same
// name removes it. Does nothing if `folder` does not exist.
void remove_folder(const std::filesystem::path& folder);

// Replaces the folder `path` by `fresh`, atomically if the file system supports RENAME_EXCHANGE; the old
// folder is removed afterwards.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& path);

// Expands "~" and "~/x" to the home folder; other paths are unchanged.
std::filesystem::path expand_home(const std::string& path);

// A file mapped read-only. Movable; the bytes stay valid for the lifetime of the object. Throws IoError if
// the path is not a regular file; does not block on a pipe without a writer.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);

  // A private mapping: writes change the mapping, not the file.
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

}  // namespace stretto
