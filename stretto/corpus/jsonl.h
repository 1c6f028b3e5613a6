#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "stretto/corpus/reader_format.h"

namespace stretto::corpus {

// Reads JSON Lines: one object per line. The keys of the first object are the columns; other keys of later
// objects are ignored. `text` must outlive the reader; `name` is the file.
class JsonlReader : public FieldReader {
 public:
  JsonlReader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}
  bool next(Fields& fields) override;
  bool always_has_header() const override { return true; }

 private:
  bool next_object();

  std::string_view rest_;
  std::string name_;
  int64_t line_ = 0;
  nlohmann::json object_;
  std::vector<std::string> columns_;
  bool header_given_ = false;
  bool object_waits_ = false;
};

}  // namespace stretto::corpus
