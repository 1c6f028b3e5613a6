#include "stretto/data/reader_labels.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/data/reader_columns.h"

namespace stretto::data {
namespace {

std::string shortened(const std::string& label) { return list_names({label}); }

bool is_number(const std::string& label) { return parse_int(label).has_value(); }

}  // namespace

std::string canonical_label(std::string_view label, const std::string& file, int64_t line) {
  if (const auto number = parse_int(label)) {
    if (*number < -1) {
      throw DataError(
          "{}:{}: label {} is out of range; classes are numbered from 0 (-1 marks a row without a label)",
          file, line, *number);
    }
    return std::to_string(*number);
  }
  const auto number = parse_double(label);
  if (!number || !std::isfinite(*number)) return std::string(label);
  if (*number != std::floor(*number) || *number < -1 || *number > 1e9) {
    throw DataError("{}:{}: label {} is not a class; classes are whole numbers from 0 or words", file, line,
                    shortened(std::string(label)));
  }
  return std::to_string(static_cast<int64_t>(*number));
}

bool label_before(const std::string& a, const std::string& b) {
  if (is_number(a) && is_number(b)) return *parse_int(a) < *parse_int(b);
  return a < b;
}

void LabelReader::add(std::string_view written, int64_t line) {
  const std::string label = canonical_label(trim(written), file_, line);
  if (label.empty() || label == "-1") {
    if (first_missing_ == 0) first_missing_ = line;
    rows_.push_back(-1);
    return;
  }
  const auto [use, is_new] = uses_.try_emplace(label, Use{static_cast<int64_t>(uses_.size()), line, 0});
  if (is_new) {
    if (expected_ != nullptr) expected_id(label, line);
    in_order_.push_back(&*use);
  }
  ++use->second.rows;
  rows_.push_back(use->second.index);
}

int64_t LabelReader::expected_id(const std::string& label, int64_t line) const {
  if (const auto id = expected_->id(label)) return *id;
  const auto& names = expected_->names();
  if (is_number(label) && std::none_of(names.begin(), names.end(), is_number)) {
    throw DataError("{}:{}: label {} is out of range; the {} labels {} are numbered from 0", file_, line,
                    label, names.size(), list_names(names));
  }
  const bool first_line = rows_.empty() && !has_header_;
  throw DataError("{}:{}: label \"{}\" is not one of {}{}{}", file_, line, shortened(label),
                  list_names(names), did_you_mean(label, names),
                  first_line ? "; if this line is a header, " + how_to_name_columns(names_) : "");
}

// Throws if labels mix numbers and words: a word among numbers is an unrecognised header or a broken row.
void LabelReader::check_same_kind() const {
  const auto& [first, first_use] = *in_order_.front();
  for (const auto* other : in_order_) {
    if (is_number(other->first) == is_number(first)) continue;
    throw DataError(
        "{}:{}: label \"{}\" and, on line {}, label \"{}\": labels are all numbers or all words (if line {} is a header, {})",
        file_, other->second.line, shortened(other->first), first_use.line, shortened(first), first_use.line,
        how_to_name_columns(names_));
  }
}

// Throws if no header was recognised and no other row has the label of the first line, which is then most
// likely a header.
void LabelReader::check_first_line(const Table& table) const {
  if (in_order_.size() < 2 || in_order_.front()->second.line != table.rows.front().line) return;
  if (in_order_.front()->second.rows > 1) return;
  throw DataError(
      "{}:{}: no other row has the label \"{}\"; if this line is a header, {}; if it is a row, put a header line (sentence and label, for example) above it",
      file_, table.rows.front().line, shortened(in_order_.front()->first), how_to_name_columns(names_));
}

void LabelReader::finish(Table& table) {
  if (expected_ != nullptr) table.labels = *expected_;
  if (in_order_.empty()) return;
  if (first_missing_ != 0) {
    throw DataError(
        "{}:{}: the row has no label (empty or -1), but line {} has \"{}\"; give every row a label or none",
        file_, first_missing_, in_order_.front()->second.line, shortened(in_order_.front()->first));
  }
  if (expected_ == nullptr) {
    check_same_kind();
    if (!has_header_ && !is_number(in_order_.front()->first)) check_first_line(table);
    std::vector<std::string> names;
    for (const auto* use : in_order_) names.push_back(use->first);
    std::sort(names.begin(), names.end(), label_before);
    table.labels = LabelSet(std::move(names));
  }
  std::vector<int64_t> ids;
  for (const auto* use : in_order_) ids.push_back(*table.labels.id(use->first));
  for (size_t i = 0; i < table.rows.size(); ++i) table.rows[i].label = ids[static_cast<size_t>(rows_[i])];
  table.has_labels = true;
}

}  // namespace stretto::data
