#include "stretto/metrics/classification.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::metrics {
namespace {

using ::testing::HasSubstr;
using Labels = std::vector<int64_t>;

// tp 3, fp 0, fn 1, tn 2 for label 1.
TEST(Classification, TwoLabels) {
  const auto scores = classification_metrics(Labels{0, 1, 0, 0, 1, 1}, Labels{0, 1, 1, 0, 1, 1}, 2);
  EXPECT_DOUBLE_EQ(scores.at("accuracy"), 5.0 / 6);
  EXPECT_DOUBLE_EQ(scores.at("f1"), 6.0 / 7);                        // 2 * 3 / (2 * 3 + 0 + 1)
  EXPECT_DOUBLE_EQ(scores.at("f1_macro"), (6.0 / 7 + 4.0 / 5) / 2);  // label 0: 2 * 2 / (4 + 1 + 0)
  EXPECT_DOUBLE_EQ(scores.at("f1_weighted"), (4 * 6.0 / 7 + 2 * 4.0 / 5) / 6);  // 4 gold ones, 2 zeros
  EXPECT_DOUBLE_EQ(scores.at("matthews_correlation"), (3.0 * 2 - 0 * 1) / std::sqrt(3 * 4 * 2 * 3));
}

// The example of scikit-learn's confusion_matrix: [[2, 0, 0], [0, 0, 1], [1, 0, 2]].
TEST(Classification, ThreeLabels) {
  const Labels predicted{0, 0, 2, 2, 0, 2};
  const Labels gold{2, 0, 2, 2, 0, 1};
  const Confusion confusion(predicted, gold, 3);
  EXPECT_EQ(confusion.count(2, 0), 1);
  EXPECT_EQ(confusion.count(1, 2), 1);
  EXPECT_EQ(confusion.count(0, 0), 2);
  const auto scores = classification_metrics(predicted, gold, 3);
  EXPECT_DOUBLE_EQ(scores.at("accuracy"), 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores.at("f1_macro"), (4.0 / 5 + 0 + 2.0 / 3) / 3);
  EXPECT_FALSE(scores.contains("f1")) << "defined for two labels only";
  EXPECT_DOUBLE_EQ(scores.at("f1_weighted"), (2 * 4.0 / 5 + 3 * 2.0 / 3) / 6);
  // (correct * total - sum of gold * predicted) / sqrt((total^2 - sum gold^2) (total^2 - sum predicted^2))
  EXPECT_DOUBLE_EQ(scores.at("matthews_correlation"), (4 * 6 - 15) / std::sqrt(22.0 * 18.0));
}

// The examples in the documentation of scikit-learn's f1_score and matthews_corrcoef.
TEST(Classification, ScikitLearnsExamples) {
  EXPECT_NEAR(classification_metrics(Labels{0, 2, 1, 0, 0, 1}, Labels{0, 1, 2, 0, 1, 2}, 3).at("f1_macro"),
              0.2667, 1e-4);
  EXPECT_NEAR(classification_metrics(Labels{1, 0, 1, 1}, Labels{1, 1, 1, 0}, 2).at("matthews_correlation"),
              -0.3333, 1e-4);
}

// scikit-learn's numbers for precision_score, recall_score (average="macro") of the example above.
TEST(Classification, MetricsHaveNames) {
  const Confusion confusion(Labels{0, 2, 1, 0, 0, 1}, Labels{0, 1, 2, 0, 1, 2}, 3);
  EXPECT_NEAR(classification_metric("precision_macro", confusion), 0.2222, 1e-4);
  EXPECT_NEAR(classification_metric("recall_macro", confusion), 0.3333, 1e-4);
  for (const char* micro : {"accuracy", "precision_micro", "recall_micro", "f1_micro"})
    EXPECT_DOUBLE_EQ(classification_metric(micro, confusion), 1.0 / 3);
  const Confusion binary(std::vector<int64_t>{5, 1, 2, 4}, 2);  // gold by predicted
  EXPECT_EQ(binary.total(), 12);
  EXPECT_DOUBLE_EQ(classification_metric("precision", binary), 4.0 / 5);
  EXPECT_DOUBLE_EQ(classification_metric("recall", binary), 4.0 / 6);
  EXPECT_DOUBLE_EQ(classification_metric("f1", binary), 8.0 / 11);
  EXPECT_THAT(message_of([&] { classification_metric("acuracy", binary); }),
              HasSubstr("did you mean \"accuracy\"?"));
  EXPECT_THAT(message_of([&] { classification_metric("f1", confusion); }),
              HasSubstr("use f1_macro or f1_micro"));
  EXPECT_THAT(message_of([&] { classification_metric("f1", Confusion(std::vector<int64_t>(4), 2)); }),
              HasSubstr("metrics of no samples"));
  EXPECT_THAT(message_of([] { Confusion(std::vector<int64_t>{1, 2, 3}, 2); }), HasSubstr("expected 4"));
  EXPECT_THAT(message_of([] {
                Confusion(std::vector<int64_t>{1, 2, 3, -1}, 2);
              }),
              HasSubstr("negative count"));
}

TEST(Classification, UndefinedRatiosAreZero) {
  const auto scores = classification_metrics(Labels{0, 0}, Labels{0, 0}, 2);
  EXPECT_EQ(scores.at("f1"), 0);
  EXPECT_EQ(scores.at("matthews_correlation"), 0);
  EXPECT_EQ(scores.at("accuracy"), 1);
}

TEST(Classification, MacroIgnoresLabelsThatDoNotOccur) {
  EXPECT_DOUBLE_EQ(classification_metrics(Labels{0, 4}, Labels{0, 4}, 6).at("f1_macro"), 1);
}

TEST(Classification, Refusals) {
  const auto message = [](const Labels& predicted, const Labels& gold, int64_t num_labels) {
    return message_of([&] { classification_metrics(predicted, gold, num_labels); });
  };
  EXPECT_THAT(message({0}, {0, 1}, 2), HasSubstr("1 predictions for 2 gold labels"));
  EXPECT_THAT(message({0, 2}, {0, 1}, 2), HasSubstr("sample 1: the predicted label 2 is out of range"));
  EXPECT_THAT(message({0, 1}, {0, -1}, 2), HasSubstr("sample 1: the gold label -1 is out of range"));
  EXPECT_THAT(message({}, {}, 2), HasSubstr("metrics of no samples"));
  EXPECT_THAT(message({}, {}, 0), HasSubstr("metrics of 0 labels are not defined"));
}

}  // namespace
}  // namespace stretto::metrics
