#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "stretto/columnar/format.h"

namespace stretto::arrow_plugin {
struct Functions;
}

namespace stretto::columnar {

// The rows of a columnar file as JSON Lines, read in parts of about 1 MiB.
class JsonLines {
 public:
  // `column`: the only one that rows have; "", or a name that the file lacks: rows have all columns.
  // `library`: the shared library that reads the file. Throws DataError, which tells what to do, without this
  // library and for a file that is damaged.
  JsonLines(const std::filesystem::path& file, Format format, const std::string& column = "",
            const char* library = "libstretto_arrow.so");

  // The next rows, each with a line end; "" after the last one. Valid until the next call. Throws DataError.
  std::string_view next();

  // The share of the file that was read.
  double progress() const;

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path file_;
  Format format_;
  const arrow_plugin::Functions& functions_;
  std::unique_ptr<void, void (*)(void*)> reader_;
};

}  // namespace stretto::columnar
