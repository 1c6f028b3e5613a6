#include "stretto/data/summary.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "stretto/data/reader_columns.h"

namespace stretto::data {
namespace {

constexpr size_t most_classes = 20;

double percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

}  // namespace

std::string describe_table(const Table& table) {
  std::string text = fmt::format("{} {}; {}", table.rows.size(), table.has_pairs ? "pairs of texts" : "texts",
                                 table.columns);
  if (!table.has_labels) return text + "; no labels";
  std::vector<int64_t> counts(static_cast<size_t>(table.labels.size()), 0);
  for (const TextRow& row : table.rows) ++counts[static_cast<size_t>(row.label)];
  text += fmt::format("; {} classes:", counts.size());
  for (size_t i = 0; i < counts.size() && i < most_classes; ++i) {
    text += fmt::format("{} {} {} ({:.1f} %)", i == 0 ? "" : ",", list_names({table.labels.names()[i]}),
                        counts[i], percent(counts[i], std::ssize(table.rows)));
  }
  if (counts.size() > most_classes) text += fmt::format(", and {} more", counts.size() - most_classes);
  return text;
}

std::string describe_lengths(std::span<const int32_t> lengths, int64_t max_length) {
  if (lengths.empty()) return "no texts";
  std::vector<int32_t> sorted(lengths.begin(), lengths.end());
  std::ranges::sort(sorted);
  const auto at = [&](double share) {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  const auto cut = sorted.end() - std::ranges::lower_bound(sorted, max_length);
  return fmt::format("{} tokens (median), {} (95 %), {} (longest); {:.1f} % are cut at data.max_length {}",
                     at(0.5), at(0.95), sorted.back(), percent(cut, std::ssize(sorted)), max_length);
}

}  // namespace stretto::data
