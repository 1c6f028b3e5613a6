#pragma once

#include <string>
#include <string_view>

#include "stretto/corpus/reader_format.h"

namespace stretto::corpus {

// Reads comma-separated values (RFC 4180): a quoted field may contain commas, line ends and doubled quotes. A
// quote inside an unquoted field is an ordinary character. `text` must outlive the reader; `name` is the
// file.
class CsvReader : public FieldReader {
 public:
  CsvReader(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}
  bool next(Fields& fields) override;

 private:
  std::string quoted_field();
  std::string plain_field();
  bool take_line_end();

  std::string_view text_;
  std::string name_;
  size_t position_ = 0;
  int64_t line_ = 1;
};

}  // namespace stretto::corpus
