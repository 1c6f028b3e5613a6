#include "stretto/data/stratified_split.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/data/reader.h"

namespace stretto::data {
namespace {

using ::testing::HasSubstr;

TEST(StratifiedSplit, HasTheSameShareOfEachLabel) {
  std::vector<int64_t> labels;
  // sorted: 80, 15 and 5 samples
  for (int64_t i = 0; i < 100; ++i) labels.push_back(i < 80 ? 0 : i < 95 ? 1 : 2);
  const Split split = stratified_split(labels, 0.2, 7);
  EXPECT_EQ(split.train.size(), 80u);
  EXPECT_EQ(split.validation.size(), 20u);
  const auto count = [&](int64_t label) {
    return std::ranges::count_if(split.validation,
                                 [&](int64_t i) { return labels[static_cast<size_t>(i)] == label; });
  };
  EXPECT_EQ(count(0), 16);
  EXPECT_EQ(count(1), 3);
  EXPECT_EQ(count(2), 1);
  EXPECT_TRUE(std::ranges::is_sorted(split.train));
  std::vector<int64_t> all = split.train;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  std::ranges::sort(all);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
  EXPECT_EQ(stratified_split(labels, 0.2, 7).validation, split.validation);
  EXPECT_NE(stratified_split(labels, 0.2, 8).validation, split.validation);
}

// 10 % of 3 labels with 5 samples each are 1.5 samples; rounding per label would give 0.
TEST(StratifiedSplit, RoundsTheTotal) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 15; ++i) labels.push_back(i % 3);
  EXPECT_EQ(stratified_split(labels, 0.1, 1).validation.size(), 2u);
}

TEST(StratifiedSplit, NeedsSamplesOnBothSides) {
  EXPECT_THAT(message_of<DataError>([] {
                stratified_split(std::vector<int64_t>{0, 1}, 0.1, 1);
              }),
              HasSubstr("leaves 2 for training and 0 for validation"));
  EXPECT_THROW(stratified_split({}, 0.5, 1), DataError);
}

TEST(StratifiedSplit, MovesRowsWithTheirLines) {
  std::string text = "sentence\tlabel\n";
  for (int i = 0; i < 20; ++i) text += "text " + std::to_string(i) + "\t" + std::to_string(i % 2) + "\n";
  Table train = parse_rows(text, "train.tsv", {.require_labels = true});
  const Table whole = train;
  const Table validation = take_validation(train, 0.2, 3);
  EXPECT_EQ(train.rows.size(), 16u);
  ASSERT_EQ(validation.rows.size(), 4u);
  EXPECT_EQ(validation.labels.names(), whole.labels.names());
  for (const auto& row : validation.rows)
    EXPECT_EQ(row.text, whole.rows.at(static_cast<size_t>(row.line) - 2).text);
}

}  // namespace
}  // namespace stretto::data
