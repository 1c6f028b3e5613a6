#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/data/rows.h"

namespace stretto::data {

// Turns the labels of a file, as written, into ids once all of them are known.
class LabelReader {
 public:
  // `file` for messages; `expected` as in ReadOptions. Without a header the first row may be one that was not recognised.
  LabelReader(std::string file, const LabelSet* expected, bool has_header)
      : file_(std::move(file)), expected_(expected), has_header_(has_header) {}

  // Takes the label of the next row of `line`. Empty or -1: none. Throws DataError for what is not in the
  // expected set.
  void add(std::string_view label, int64_t line);

  // Fills in table.rows' labels, which were added one per row, and table.labels. Throws DataError when some
  // rows have a label and others none, when labels mix numbers and words, and for a first line that looks like a header.
  void finish(Table& table);

 private:
  struct Use {
    int64_t index;  // in order of appearance
    int64_t line;   // of the first row
    int64_t rows;
  };
  int64_t expected_id(const std::string& label, int64_t line) const;
  void check_same_kind() const;
  void check_first_line(const Table& table) const;

  std::string file_;
  const LabelSet* expected_;
  bool has_header_;
  std::map<std::string, Use> uses_;
  std::vector<std::pair<const std::string, Use>*> in_order_;  // of appearance
  std::vector<int64_t> rows_;                                 // each row's label by its index; -1: none
  int64_t first_missing_ = 0;  // line of the first row without a label, 0: none
};

}  // namespace stretto::data
