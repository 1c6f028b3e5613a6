#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::corpus {

// One record of a file. A value is absent where the format has a way to write that: a JSON key that is missing, null, a
// list or an object.
struct Fields {
  int64_t line = 0;  // physical line on which the record begins, from 1
  std::vector<std::optional<std::string>> values;
  std::map<size_t, std::string> nested;  // the absent values that are lists or objects, as text for messages
  std::map<size_t, std::vector<std::string>> lists = {};  // of these the lists of plain values
};

// A field of more bytes than this is refused: it is a file without line ends, or with an open quote, and not a text. Rows
// take several times the memory of their bytes.
constexpr size_t most_field_bytes = size_t{16} << 20;

// Throws DataError where a line or quoted field has more than most_field_bytes.
void require_field_size(size_t bytes, const std::string& file, int64_t line);

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

// Whether the name of a file, in any case, ends in .jsonl or .json.
bool is_json_lines(const std::string& file);

// The reader for the extension of a file's name, in any case: .tsv and .txt (tabs), .csv, .jsonl and .json; null for others. `text`
// must outlive it.
std::unique_ptr<FieldReader> reader_by_extension(std::string_view text, const std::string& file);

}  // namespace stretto::corpus
