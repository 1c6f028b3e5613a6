#include "stretto/metrics/class_report.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/metrics/multi_label.h"
#include "stretto/text/utf8.h"

namespace stretto::metrics {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> three_labels = {"negative", "neutral", "positive"};

Confusion small_confusion() {
  const std::vector<int64_t> gold = {0, 0, 0, 1, 1, 2, 2, 2, 2}, predicted = {0, 0, 2, 2, 1, 2, 2, 0, 2};
  return {predicted, gold, 3};
}

// Expected values are those of scikit-learn's precision_recall_fscore_support.
TEST(ClassReport, ScoresOfEachClass) {
  const auto scores = class_scores(small_confusion(), three_labels);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_DOUBLE_EQ(scores[0].precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[1].precision, 1);
  EXPECT_DOUBLE_EQ(scores[1].recall, 0.5);
  EXPECT_DOUBLE_EQ(scores[2].f1, 2.0 / 3);
  EXPECT_EQ(scores[2].support, 4);
  const ClassScores absent = class_scores("absent", 0, 0, 0);
  EXPECT_EQ(absent.precision + absent.recall + absent.f1, 0);
}

TEST(ClassReport, AsJson) {
  const auto json = class_scores_json(class_scores(small_confusion(), three_labels));
  EXPECT_EQ(json["neutral"].dump(), R"({"precision":1.0,"recall":0.5,"f1":0.6666666666666666,"support":2})");
  EXPECT_EQ(confusion_json(small_confusion(), three_labels).dump(),
            R"({"labels":["negative","neutral","positive"],"counts":[[2,0,1],[0,1,1],[1,0,3]]})");
}

TEST(ClassReport, AsTables) {
  EXPECT_EQ(class_scores_table(class_scores(small_confusion(), three_labels)),
            "class                     precision    recall        f1   support\n"
            "negative                     0.6667    0.6667    0.6667         3\n"
            "neutral                      1.0000    0.5000    0.6667         2\n"
            "positive                     0.6000    0.7500    0.6667         4\n");
  EXPECT_EQ(confusion_table(small_confusion(), three_labels),
            "gold \\ predicted       negati~ neutral positi~\n"
            "negative                     2       0       1\n"
            "neutral                      0       1       1\n"
            "positive                     1       0       3\n");
}

// Many long labels with line ends and multi-byte letters.
TEST(ClassReport, TablesFitATerminal) {
  std::vector<std::string> labels;
  for (int i = 0; i < 40; ++i) labels.push_back("a label of\nmany w\u00f6rds, number " + std::to_string(i));
  const std::vector<int64_t> gold = {39, 39, 3}, predicted = {39, 3, 39};
  const Confusion confusion(predicted, gold, 40);
  const std::string tables =
      class_scores_table(class_scores(confusion, labels)) + confusion_table(confusion, labels);
  std::istringstream lines(tables);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(text::count_code_points(line), 80U) << line;
  EXPECT_THAT(tables, HasSubstr("and 10 classes with less support\n"));
  EXPECT_THAT(tables, HasSubstr("and 33 classes with fewer samples\n"));
}

// Expected values are those of scikit-learn's accuracy_score and f1_score of indicator matrices.
TEST(MultiLabel, MetricsOfScikitLearn) {
  const std::vector<uint8_t> gold = {1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0},
                             predicted = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0};
  const MultiLabel scores(predicted, gold, {"a", "b", "c"});
  const auto metrics = scores.metrics();
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("f1_micro"), 0.8);
  EXPECT_DOUBLE_EQ(metrics.at("f1_macro"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.at("f1_weighted"), 0.8);
  EXPECT_EQ(scores.classes()[2].support, 1);
  EXPECT_THROW(MultiLabel(predicted, gold, {"a", "b", "c", "d", "e"}), Error);
  EXPECT_THROW(MultiLabel({}, {}, {"a"}).metrics(), Error);
}

}  // namespace
}  // namespace stretto::metrics
