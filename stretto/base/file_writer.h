#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "stretto/base/fd.h"

namespace stretto {

// Files that are written piece by piece. Functions throw IoError with the path and the system's reason.

// A new file, written sequentially, for content that does not fit in memory. finish() makes it durable;
// destruction before that removes the file. The writing is not atomic: to make a set of files appear
// atomically, write them into a folder of another name and rename it with rename_folder.
class FileWriter {
 public:
  // Creates the file, replacing an existing one.
  explicit FileWriter(const std::filesystem::path& path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes);
  void skip(int64_t bytes);               // leaves a hole, which reads as zeros once something follows it
  int64_t size() const { return size_; }  // the offset of the next byte
  void finish();                          // fsync and close. REQUIRES: not finished before

 private:
  std::filesystem::path path_;
  Fd fd_;
  int64_t size_ = 0;
};

// A file opened for appending: log files and JSON lines. write() appends all bytes or, if it throws, none.
// REQUIRES: there is no other writer.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path, bool keep_old = true);

  void write(std::string_view bytes);

 private:
  std::filesystem::path path_;
  Fd fd_;
};

}  // namespace stretto
