#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/data/rows.h"

namespace stretto::data {

// Converts the labels of a file to those of a table's rows once all of them are known.
class LabelColumn {
 public:
  virtual ~LabelColumn() = default;

  // Adds the label of the next row, on `line`. Throws DataError for a malformed or unexpected label.
  virtual void add(std::string_view label, int64_t line) = 0;
  virtual void add_list(const std::vector<std::string>& labels, int64_t line) = 0;

  // Fills in the labels of table.rows, from one added label per row, and table.labels. Throws DataError if
  // some rows have a label and others none.
  virtual void finish(Table& table) = 0;
};

// The canonical spelling of a class: "1" for "01" and "1.0". Throws DataError for numbers that cannot be
// classes.
std::string canonical_label(std::string_view label, const std::string& file, int64_t line);

// The order of classes: numbers by value, words by their bytes.
bool label_before(const std::string& a, const std::string& b);

// One class per row.
class LabelReader : public LabelColumn {
 public:
  // `file`: for messages; `expected` and `names`: see ReadOptions. `has_header`: false if the first row may
  // be an unrecognised header.
  LabelReader(std::string file, const LabelSet* expected, bool has_header, OptionNames names)
      : file_(std::move(file)), expected_(expected), has_header_(has_header), names_(std::move(names)) {}

  // An empty label or -1 means no label.
  void add(std::string_view label, int64_t line) override;
  void add_list(const std::vector<std::string>& labels, int64_t line) override { add(labels.at(0), line); }

  // Throws DataError, too, if labels mix numbers and words, and for a first line that looks like a header.
  void finish(Table& table) override;

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
  OptionNames names_;
  std::map<std::string, Use> uses_;
  std::vector<std::pair<const std::string, Use>*> in_order_;  // in order of appearance
  std::vector<int64_t> rows_;                                 // the index of each row's label; -1: none
  int64_t first_missing_ = 0;  // line of the first row without a label, 0: none
};

}  // namespace stretto::data
