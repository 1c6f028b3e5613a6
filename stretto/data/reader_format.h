#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stretto::data {

// One record of a file. A value is absent where the format can say so: a JSON key that is missing, null or
// nested.
struct Fields {
  int64_t line = 0;  // physical line on which the record begins, from 1
  std::vector<std::optional<std::string>> values;
};

// Reads a file's records front to back. What a format has to know to take part in read_rows.
class FieldReader {
 public:
  virtual ~FieldReader() = default;

  // The next record into `fields`, or false at the end. Throws DataError with file and line.
  virtual bool next(Fields& fields) = 0;

  // Whether the first record is the columns' names by the format's own rules; else read_rows looks at the
  // record.
  virtual bool always_has_header() const { return false; }
};

}  // namespace stretto::data
