#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model_config/problem_type.h"

namespace stretto::data {

// One example of text classification.
struct TextRow {
  std::string text = {};
  std::string text_pair = {};  // empty if the table has no pairs
  int64_t label = -1;          // -1: none
  int64_t line = 0;            // physical line of the file on which the row begins, from 1
  // regression: the number; multi-label: 1 for each of the row's classes, else 0; empty: no label
  std::vector<float> targets = {};
};

// The classes: a label's id is its index among the names, as in a model's id2label.
class LabelSet {
 public:
  LabelSet() = default;
  // Throws DataError if a name occurs twice.
  explicit LabelSet(std::vector<std::string> names);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }

  // The id of a label in a file: the index of that name or, if no name is a number, the number itself;
  // nullopt if unknown.
  std::optional<int64_t> id(std::string_view label) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, int64_t, std::less<>> ids_;
  bool numbers_are_ids_ = true;
};

// The rows of one file. Either every row has a label, or no row does.
struct Table {
  std::string name;     // the file, for messages
  std::string columns;  // the columns that were read: "text = Text, label = Label (named columns)"
  std::vector<TextRow> rows;
  ProblemType problem = ProblemType::single_label_classification;  // the kind of its labels
  LabelSet labels;  // empty for numbers, and if the rows have none and no set was given
  bool has_pairs = false;
  bool has_labels = false;
};

// A hash of the rows' texts, pairs and labels with their names, independent of file names and lines.
std::string content_hash(const Table& table);

// Throws DataError unless `table` can be trained on: it must have labelled rows, with at least two classes or
// with numbers.
void check_training_labels(const Table& table);

}  // namespace stretto::data
