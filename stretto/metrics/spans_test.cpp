#include "stretto/metrics/spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::metrics {
namespace {

using ::testing::HasSubstr;
using Sentences = std::vector<std::vector<std::string>>;

// Expected values are computed by hand; tests/score compares with seqeval on generated files.
TEST(SpanScores, CountsSpansByLimitsAndType) {
  const Sentences gold = {{"O", "O", "B-MISC", "I-MISC"}, {"B-PER", "I-PER", "O"}},
                  predicted = {{"O", "B-MISC", "I-MISC", "I-MISC"}, {"B-PER", "I-PER", "B-PER"}};
  const SpanScores scores(gold, predicted);
  EXPECT_DOUBLE_EQ(scores.micro().precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.micro().recall, 1.0 / 2);
  EXPECT_DOUBLE_EQ(scores.micro().f1, 2.0 / 5);
  EXPECT_DOUBLE_EQ(scores.macro().f1, (0 + 2.0 / 3) / 2);
  EXPECT_DOUBLE_EQ(scores.accuracy(), 4.0 / 7);
  const auto json = scores.to_json();
  EXPECT_EQ(json.at("PER").at("number"), 1);
  EXPECT_EQ(json.at("weighted avg").at("support"), 2);
}

TEST(SpanScores, StrictModeIgnoresMalformedSpans) {
  const Sentences gold = {{"B-PER", "I-PER"}}, predicted = {{"I-PER", "I-PER"}};
  EXPECT_EQ(SpanScores(gold, predicted).micro().f1, 1);
  EXPECT_EQ(SpanScores(gold, predicted, corpus::TagScheme::iob2).micro().f1, 0);
}

TEST(SpanScores, Refusals) {
  const auto message = [](const Sentences& gold, const Sentences& predicted) {
    return message_of<DataError>([&] { SpanScores(gold, predicted); });
  };
  EXPECT_THAT(message({{"O"}}, {}), HasSubstr("1 gold and 0 predicted sentences"));
  EXPECT_THAT(message({{"O"}}, {{"O", "O"}}), HasSubstr("sentence 1: 1 gold and 2 predicted tags"));
  EXPECT_THAT(message({}, {}), HasSubstr("no tags to score"));
}

// The example of conlleval's documentation, with counts per type and percentages with two decimals.
TEST(Conlleval, Percentages) {
  const Sentences gold = {{"B-NP", "I-NP", "O", "B-VP"}}, predicted = {{"B-NP", "I-NP", "B-NP", "B-VP"}};
  const auto json = conlleval(gold, predicted);
  EXPECT_EQ(json.at("phrases"), 2);
  EXPECT_EQ(json.at("found"), 3);
  EXPECT_EQ(json.at("correct"), 2);
  EXPECT_EQ(json.at("precision"), 66.67);
  EXPECT_EQ(json.at("FB1"), 80.0);
  EXPECT_EQ(json.at("types").at("NP").at("precision"), 50.0);
}

}  // namespace
}  // namespace stretto::metrics
