#include "stretto/corpus/csv.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::corpus {

// Skips LF or CR LF.
bool CsvReader::take_line_end() {
  size_t end = position_;
  if (end < text_.size() && text_[end] == '\r') ++end;
  if (end >= text_.size() || text_[end] != '\n') return false;
  position_ = end + 1;
  ++line_;
  return true;
}

// REQUIRES: a quote at position_. Leaves position_ after the closing quote.
std::string CsvReader::quoted_field() {
  const int64_t opened = line_;
  std::string value;
  while (true) {
    const size_t begin = position_ + 1;
    const size_t quote = text_.find('"', begin);
    if (quote == std::string_view::npos) {
      throw DataError("{}:{}: the quote that opens here is never closed", name_, opened);
    }
    const std::string_view piece = text_.substr(begin, quote - begin);
    require_field_size(value.size() + piece.size(), name_, opened);
    line_ += std::count(piece.begin(), piece.end(), '\n');
    value += piece;
    position_ = quote + 1;
    if (position_ >= text_.size() || text_[position_] != '"') return value;
    value += '"';  // a doubled quote represents one
  }
}

std::string CsvReader::plain_field() {
  size_t end = std::min(text_.find_first_of(",\n", position_), text_.size());
  const size_t begin = position_;
  position_ = end;
  require_field_size(end - begin, name_, line_);
  const bool before_line_end = end == text_.size() || text_[end] == '\n';
  if (before_line_end && end > begin && text_[end - 1] == '\r') --end;
  return std::string(text_.substr(begin, end - begin));
}

bool CsvReader::next(Fields& fields) {
  while (take_line_end()) {
  }
  if (position_ >= text_.size()) return false;
  fields.line = line_;
  fields.values.clear();
  while (true) {
    const bool quoted = position_ < text_.size() && text_[position_] == '"';
    fields.values.emplace_back(quoted ? quoted_field() : plain_field());
    if (position_ >= text_.size() || take_line_end()) return true;
    if (text_[position_] != ',') {
      throw DataError(
          "{}:{}: text after a closing quote; a quote inside a quoted field must be doubled (\"\")", name_,
          line_);
    }
    ++position_;
  }
}

}  // namespace stretto::corpus
