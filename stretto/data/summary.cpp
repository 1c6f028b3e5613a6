#include "stretto/data/summary.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "stretto/data/reader_columns.h"

namespace stretto::data {
namespace {

constexpr size_t most_classes = 20;

double percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

// The number of rows per class.
std::string describe_counts(const Table& table, const std::vector<int64_t>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size() && i < most_classes; ++i) {
    text += fmt::format("{} {} {} ({:.1f} %)", i == 0 ? "" : ",", list_names({table.labels.names()[i]}),
                        counts[i], percent(counts[i], std::ssize(table.rows)));
  }
  if (counts.size() > most_classes) text += fmt::format(", and {} more", counts.size() - most_classes);
  return text;
}

std::string describe_numbers(const Table& table) {
  double sum = 0;
  float least = table.rows.front().targets.front(), largest = least;
  for (const TextRow& row : table.rows) {
    sum += row.targets.front();
    least = std::min(least, row.targets.front());
    largest = std::max(largest, row.targets.front());
  }
  return fmt::format("; numbers from {} to {}, mean {:.4g}", least, largest,
                     sum / static_cast<double>(table.rows.size()));
}

std::string describe_classes(const Table& table) {
  std::vector<int64_t> counts(static_cast<size_t>(table.labels.size()), 0);
  int64_t all = 0;
  for (const TextRow& row : table.rows) {
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] += row.targets[i] > 0 ? 1 : 0;
      all += row.targets[i] > 0 ? 1 : 0;
    }
  }
  return fmt::format("; {} classes, {:.2f} per text:", counts.size(),
                     static_cast<double>(all) / static_cast<double>(table.rows.size())) +
         describe_counts(table, counts);
}

}  // namespace

std::string describe_table(const Table& table) {
  std::string text = fmt::format("{} {}; {}", table.rows.size(), table.has_pairs ? "pairs of texts" : "texts",
                                 table.columns);
  if (!table.has_labels) return text + "; no labels";
  if (table.problem == ProblemType::regression) return text + describe_numbers(table);
  if (table.problem == ProblemType::multi_label_classification) return text + describe_classes(table);
  std::vector<int64_t> counts(static_cast<size_t>(table.labels.size()), 0);
  for (const TextRow& row : table.rows) ++counts[static_cast<size_t>(row.label)];
  return text + fmt::format("; {} classes:", counts.size()) + describe_counts(table, counts);
}

std::string describe_lengths(const SampleLengths& lengths, int64_t max_length, const OptionNames& names) {
  if (lengths.size == 0) return "no texts";
  std::map<int32_t, int64_t> counts;
  for (int64_t sample = 0; sample < lengths.size; ++sample) ++counts[lengths.of(sample)];
  // The quantile `share` of the lengths.
  const auto at = [&](double share) {
    auto place = static_cast<int64_t>(share * static_cast<double>(lengths.size - 1));
    auto length = counts.begin();
    for (; place >= length->second; ++length) place -= length->second;
    return length->first;
  };
  int64_t cut = 0;
  for (const auto& [length, count] : counts) cut += length >= max_length ? count : 0;
  return fmt::format("{} tokens (median), {} (95 %), {} (longest); {:.1f} % are cut at {} {}", at(0.5),
                     at(0.95), counts.rbegin()->first, percent(cut, lengths.size), names("max_length"),
                     max_length);
}

}  // namespace stretto::data
