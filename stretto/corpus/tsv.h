#pragma once

#include <string>
#include <string_view>

#include "stretto/corpus/reader_format.h"

namespace stretto::corpus {

// Reads tab-separated lines without quoting, the format of GLUE's files. `text` must outlive the reader;
// `name` is the file.
class TsvReader : public FieldReader {
 public:
  TsvReader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}
  bool next(Fields& fields) override;

 private:
  std::string_view rest_;
  std::string name_;
  int64_t line_ = 0;
};

// Removes the next line from `rest` and returns it without its LF or CR LF. REQUIRES: rest is not empty.
std::string_view take_line(std::string_view& rest);

}  // namespace stretto::corpus
