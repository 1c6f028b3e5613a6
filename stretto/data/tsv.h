#pragma once

#include <string_view>

#include "stretto/data/reader_format.h"

namespace stretto::data {

// Tab-separated lines without any quoting, as GLUE's files are. `text` must outlive the reader.
class TsvReader : public FieldReader {
 public:
  explicit TsvReader(std::string_view text) : rest_(text) {}
  bool next(Fields& fields) override;

 private:
  std::string_view rest_;
  int64_t line_ = 0;
};

// Cuts the next line off `rest`, without its LF or CR LF. REQUIRES: rest is not empty.
std::string_view take_line(std::string_view& rest);

}  // namespace stretto::data
