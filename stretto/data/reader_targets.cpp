#include "stretto/data/reader_targets.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/data/reader_columns.h"

namespace stretto::data {

void NumberReader::add(std::string_view written, int64_t line) {
  const std::string text(trim(written));
  int64_t& first = text.empty() ? first_missing_ : first_given_;
  if (first == 0) first = line;
  const auto number = text.empty() ? std::optional(0.0) : parse_double(text);
  if (!number || !std::isfinite(static_cast<float>(*number))) {
    throw DataError(
        "{}:{}: label \"{}\" is not a finite number, which a regression needs (if this line is a header, {})",
        file_, line, list_names({text}), how_to_name_columns(names_));
  }
  numbers_.push_back(static_cast<float>(*number));
}

void NumberReader::finish(Table& table) {
  if (first_given_ == 0) return;
  if (first_missing_ != 0) {
    throw DataError("{}:{}: the row has no label, but line {} has one; give every row a number or none",
                    file_, first_missing_, first_given_);
  }
  for (size_t i = 0; i < table.rows.size(); ++i) table.rows[i].targets = {numbers_[i]};
  table.has_labels = true;
}

void ClassListReader::add(std::string_view label, int64_t line) {
  std::vector<std::string> labels;
  while (!label.empty()) {
    const size_t at = label.find(separator_);
    if (const auto one = trim(label.substr(0, at)); !one.empty()) labels.emplace_back(one);
    label = at == std::string_view::npos ? "" : label.substr(at + separator_.size());
  }
  add_list(labels, line);
}

void ClassListReader::add_list(const std::vector<std::string>& labels, int64_t line) {
  std::vector<int64_t> row;
  for (const std::string& written : labels) {
    const std::string label = canonical_label(trim(written), file_, line);
    if (label.empty() || label == "-1") {
      throw DataError("{}:{}: \"{}\" among the labels is not a class; an empty list stands for none", file_,
                      line, list_names({written}));
    }
    if (expected_ != nullptr && !expected_->id(label)) {
      throw DataError("{}:{}: label \"{}\" is not one of {}{}", file_, line, list_names({label}),
                      list_names(expected_->names()), did_you_mean(label, expected_->names()));
    }
    row.push_back(indices_.try_emplace(label, std::ssize(indices_)).first->second);
  }
  rows_.push_back(std::move(row));
}

void ClassListReader::finish(Table& table) {
  if (expected_ != nullptr) table.labels = *expected_;
  if (indices_.empty()) return;
  std::vector<std::string> names(indices_.size());
  for (const auto& [name, index] : indices_) names[static_cast<size_t>(index)] = name;
  if (expected_ == nullptr) {
    std::vector<std::string> sorted = names;
    std::sort(sorted.begin(), sorted.end(), label_before);
    table.labels = LabelSet(std::move(sorted));
  }
  for (size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].targets.assign(static_cast<size_t>(table.labels.size()), 0);
    for (const int64_t index : rows_[i])
      table.rows[i].targets[static_cast<size_t>(*table.labels.id(names[static_cast<size_t>(index)]))] = 1;
  }
  table.has_labels = true;
}

}  // namespace stretto::data
