#include "stretto/data/rows.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"

namespace stretto::data {

LabelSet::LabelSet(std::vector<std::string> names) : names_(std::move(names)) {
  for (const std::string& name : names_) {
    const auto id = static_cast<int64_t>(ids_.size());
    if (!ids_.emplace(name, id).second)
      throw DataError("the label \"{}\" occurs twice among the label names", name);
    if (parse_int(name)) numbers_are_ids_ = false;
  }
}

std::optional<int64_t> LabelSet::id(std::string_view label) const {
  if (const auto found = ids_.find(label); found != ids_.end()) return found->second;
  if (!numbers_are_ids_) return std::nullopt;
  const auto number = parse_int(label);
  if (!number || *number < 0 || *number >= size()) return std::nullopt;
  return *number;
}

std::string content_hash(const Table& table) {
  std::vector<uint64_t> parts = {table.has_pairs, table.has_labels};
  for (const std::string& name : table.labels.names()) parts.push_back(hash64(name));
  for (const TextRow& row : table.rows) {
    parts.push_back(hash64(row.text));
    parts.push_back(hash64(row.text_pair));
    parts.push_back(static_cast<uint64_t>(row.label));
    parts.push_back(
        hash64({reinterpret_cast<const char*>(row.targets.data()), row.targets.size() * sizeof(float)}));
  }
  return hash128_hex({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(uint64_t)});
}

namespace {

void check_targets(const Table& table) {
  const auto& first = table.rows.front().targets;
  const bool one = std::all_of(table.rows.begin(), table.rows.end(),
                               [&](const TextRow& row) { return row.targets == first; });
  if (!one) return;
  if (table.problem == ProblemType::regression) {
    throw DataError("{}: all {} rows have the label {}; a regression needs rows with different numbers",
                    table.name, table.rows.size(), first.front());
  }
  throw DataError(
      "{}: all {} rows have the same classes; a multi-label classification needs rows with different ones",
      table.name, table.rows.size());
}

}  // namespace

void check_training_labels(const Table& table) {
  if (!table.has_labels) {
    throw DataError("{}: the rows have no labels, and training a classifier needs one in each row",
                    table.name);
  }
  if (table.problem != ProblemType::single_label_classification) return check_targets(table);
  const int64_t first = table.rows.front().label;
  const bool one_class = std::all_of(table.rows.begin(), table.rows.end(),
                                     [&](const TextRow& row) { return row.label == first; });
  if (one_class) {
    throw DataError("{}: all {} rows have the label \"{}\"; a classifier needs rows of at least two classes",
                    table.name, table.rows.size(), table.labels.names().at(static_cast<size_t>(first)));
  }
}

}  // namespace stretto::data
