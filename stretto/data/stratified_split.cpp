#include "stretto/data/stratified_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/data/rows.h"

namespace stretto::data {

// The samples of each label with the smallest hashes of (seed, index) are drawn. The numbers per label are
// rounded by the largest-remainder method, so that their sum is the rounded total.
Split stratified_split(std::span<const int64_t> labels, double fraction, uint64_t seed) {
  std::map<int64_t, std::vector<std::pair<uint64_t, int64_t>>> by_label;
  for (int64_t i = 0; i < std::ssize(labels); ++i) {
    const uint64_t key = hash64(std::array<uint64_t, 2>{seed, static_cast<uint64_t>(i)});
    by_label[labels[static_cast<size_t>(i)]].emplace_back(key, i);
  }
  auto left = static_cast<int64_t>(std::llround(fraction * static_cast<double>(labels.size())));
  struct Share {
    int64_t label, count;
    double remainder;
  };
  std::vector<Share> shares;
  for (const auto& [label, samples] : by_label) {
    const double exact = fraction * static_cast<double>(samples.size());
    shares.push_back({label, static_cast<int64_t>(exact), exact - std::floor(exact)});
    left -= shares.back().count;
  }
  std::ranges::stable_sort(shares, std::greater<>(), &Share::remainder);
  for (Share& share : shares) {
    if (left <= 0) break;
    ++share.count;
    --left;
  }
  Split split;
  for (const Share& share : shares) {
    auto& samples = by_label.at(share.label);
    std::ranges::sort(samples);
    for (int64_t i = 0; i < std::ssize(samples); ++i)
      (i < share.count ? split.validation : split.train).push_back(samples[static_cast<size_t>(i)].second);
  }
  std::ranges::sort(split.train);
  std::ranges::sort(split.validation);
  if (split.train.empty() || split.validation.empty()) {
    throw DataError(
        "a validation split of {} of {} samples leaves {} for training and {} for validation; both are needed",
        fraction, labels.size(), split.train.size(), split.validation.size());
  }
  return split;
}

Table take_validation(Table& train, double fraction, uint64_t seed) {
  std::vector<int64_t> labels;
  for (const auto& row : train.rows) labels.push_back(row.label);
  const Split split = stratified_split(labels, fraction, seed);
  Table validation = train;
  const auto select = [&](Table& table, const std::vector<int64_t>& indices) {
    auto rows = std::move(table.rows);
    table.rows.clear();
    for (const int64_t index : indices) table.rows.push_back(std::move(rows[static_cast<size_t>(index)]));
  };
  select(validation, split.validation);
  select(train, split.train);
  return validation;
}

}  // namespace stretto::data
