#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::corpus {

// One record of a file. A value is absent if its JSON key is missing, null, a list or an object.
struct Fields {
  int64_t line = 0;  // physical line on which the record begins, from 1
  std::vector<std::optional<std::string>> values;
  std::map<size_t, std::string> nested;  // the absent values that are lists or objects, as text for messages
  std::map<size_t, std::vector<std::string>> lists = {};  // the lists of plain values among these
};

// The maximum size of a field. A larger one means that the file has no line ends or an unclosed quote.
constexpr size_t most_field_bytes = size_t{16} << 20;

// Throws DataError if a line or quoted field has more than most_field_bytes.
void require_field_size(size_t bytes, const std::string& file, int64_t line);

// Reads the records of a file in order; a format of read_rows implements it.
class FieldReader {
 public:
  virtual ~FieldReader() = default;

  // Reads the next record into `fields`; returns false at the end. Throws DataError with file and line.
  virtual bool next(Fields& fields) = 0;

  // Whether the format defines the first record as the names of the columns; otherwise read_rows decides by
  // its content.
  virtual bool always_has_header() const { return false; }
};

// Whether the name of a file, in any case, ends in .jsonl or .json.
bool is_json_lines(const std::string& file);

// The reader for the extension of a file's name, in any case: .tsv and .txt (tabs), .csv, .jsonl and .json;
// null for others. `text` must outlive it.
std::unique_ptr<FieldReader> reader_by_extension(std::string_view text, const std::string& file);

}  // namespace stretto::corpus
