#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stretto/corpus/reader_format.h"
#include "stretto/data/reader.h"

namespace stretto::data {

// The fields of a record that are a row's values.
struct Layout {
  std::vector<std::string> columns;  // all the file's columns; "1", "2", ... without a header
  bool has_header = false;
  size_t text = 0;
  std::optional<size_t> text_pair;
  std::optional<size_t> label;
};

// Decides which columns of the file `name` to read from its first record. Throws ConfigError for a requested
// column that is missing, and if no column looks like the text; DataError if another character than that of
// the file's extension separates the columns.
Layout choose_columns(const std::string& name, const corpus::Fields& first, bool always_has_header,
                      const ReadOptions& options);

// "text = Text, label = Label (named columns)".
std::string layout_text(const Layout& layout);

// "name its columns with columns.text and columns.label".
std::string how_to_name_columns(const OptionNames& names);

// "sentence, label", shortened if it would be long; for messages.
std::string list_names(const std::vector<std::string>& names);

}  // namespace stretto::data
