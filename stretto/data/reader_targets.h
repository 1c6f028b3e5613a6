#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/data/reader_labels.h"

namespace stretto::data {

// Regression: finite numbers. Empty: none.
class NumberReader : public LabelColumn {
 public:
  NumberReader(std::string file, OptionNames names) : file_(std::move(file)), names_(std::move(names)) {}
  void add(std::string_view label, int64_t line) override;
  void add_list(const std::vector<std::string>& labels, int64_t line) override { add(labels.at(0), line); }
  void finish(Table& table) override;

 private:
  std::string file_;
  OptionNames names_;
  std::vector<float> numbers_;
  int64_t first_missing_ = 0, first_given_ = 0;  // lines; 0: none
};

// Multi-label: a list, or a text in which `separator` separates the classes. An empty value is a row without
// classes; if all rows are empty, they have no labels.
class ClassListReader : public LabelColumn {
 public:
  ClassListReader(std::string file, const LabelSet* expected, std::string separator)
      : file_(std::move(file)), expected_(expected), separator_(std::move(separator)) {}
  void add(std::string_view label, int64_t line) override;
  void add_list(const std::vector<std::string>& labels, int64_t line) override;
  void finish(Table& table) override;

 private:
  std::string file_;
  const LabelSet* expected_;
  std::string separator_;
  std::map<std::string, int64_t> indices_;  // indices of the classes, in order of appearance
  std::vector<std::vector<int64_t>> rows_;  // each row's classes
};

}  // namespace stretto::data
