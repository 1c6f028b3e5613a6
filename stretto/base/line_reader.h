#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/fd.h"

namespace stretto {

// The lines of a file, of a pipe or of standard input, as they arrive: a program that reads what this one
// writes gets its answer before it sends the next line.
class LineReader {
 public:
  // "-": standard input. Throws IoError if the file cannot be opened.
  explicit LineReader(const std::filesystem::path& path);

  const std::string& name() const { return name_; }  // the path, or "standard input"

  // The complete lines of the next part of the input, without their newlines; at least one, none at the end.
  // They are valid until the next call. Throws IoError if the input cannot be read, DataError for a line of
  // more than 16 MiB, such as that of /dev/zero.
  std::span<const std::string_view> next_lines();

  // The number of the first of these lines, from 1.
  int64_t line_number() const { return number_; }

  // Reads the rest of the input. Throws IoError, or DataError if it has more than `most_bytes`.
  std::string rest(size_t most_bytes);

 private:
  bool read_more();

  std::string name_;
  Fd file_;  // none: standard input
  std::string buffer_;
  size_t used_ = 0;  // bytes of the lines handed out
  std::vector<std::string_view> lines_;
  int64_t number_ = 1;
  bool ended_ = false;
};

}  // namespace stretto
