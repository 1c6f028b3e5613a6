#include "stretto/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"

namespace stretto::metrics {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

// Expected values are computed by counting pairs; the first example is from scikit-learn's roc_auc_score.
TEST(Ranking, AreaUnderTheRocCurve) {
  EXPECT_DOUBLE_EQ(area_under_roc(Values{0.1, 0.4, 0.35, 0.8}, Values{0, 0, 1, 1}), 0.75);
  EXPECT_DOUBLE_EQ(area_under_roc(Values{0.8, 0.35, 0.4, 0.1}, Values{1, 1, 0, 0}), 0.75);
  EXPECT_DOUBLE_EQ(area_under_roc(Values{1, 1, 1}, Values{0, 1, 0}), 0.5);
  EXPECT_DOUBLE_EQ(area_under_roc(Values{1, 2, 2, 3}, Values{0, 0, 1, 1}), (2 + 1.5) / 4);
  EXPECT_THROW(area_under_roc(Values{1, 2}, Values{1, 1}), UndefinedMetric);
  EXPECT_THROW(area_under_roc(Values{1, 2}, Values{0, 2}), Error);
  EXPECT_THROW(area_under_roc(Values{1, NAN}, Values{0, 1}), Error);
  EXPECT_THROW(area_under_roc(Values{1}, Values{0, 1}), Error);
}

// The first example is from scikit-learn's average_precision_score; the second has a tie, which is one
// threshold.
TEST(Ranking, AveragePrecision) {
  EXPECT_DOUBLE_EQ(average_precision(Values{0.1, 0.4, 0.35, 0.8}, Values{0, 0, 1, 1}), 0.5 + 0.5 * 2 / 3);
  EXPECT_DOUBLE_EQ(average_precision(Values{1, 2, 2, 3}, Values{0, 0, 1, 1}), 0.5 + 0.5 * 2 / 3);
  EXPECT_EQ(average_precision(Values{1, 2}, Values{0, 0}), 0);
  EXPECT_EQ(average_precision(Values{1, 2}, Values{1, 1}), 1);
  EXPECT_THROW(average_precision(Values{}, Values{}), Error);
  EXPECT_THROW(average_precision(Values{NAN}, Values{1}), Error);
}

// The labels of a case of the golden file [samples, num_labels].
Values labels_of(const nlohmann::json& golden) {
  auto labels = golden.at("labels").get<Values>();
  if (golden.at("kind") != "multi_class") return labels;
  const auto num_labels = golden.at("num_labels").get<size_t>();
  Values one_hot(labels.size() * num_labels);
  for (size_t i = 0; i < labels.size(); ++i) one_hot[i * num_labels + static_cast<size_t>(labels[i])] = 1;
  return one_hot;
}

TEST(Ranking, EqualsScikitLearn) {
  const auto cases = nlohmann::json::parse(
      read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/metrics/ranking.json"));
  ASSERT_EQ(cases.size(), 7U);
  for (const auto& golden : cases) {
    const auto scores = golden.at("scores").get<Values>();
    const Values labels = labels_of(golden);
    const std::pair<const char*, RankingFunction*> both[] = {{"auroc", area_under_roc},
                                                             {"average_precision", average_precision}};
    for (const auto& [name, metric] : both) {
      const auto& wanted = golden.at(name);
      if (golden.at("kind") == "binary") {
        EXPECT_NEAR(metric(scores, labels), wanted.get<double>(), 1e-14) << name;
        continue;
      }
      for (const std::string& average : enum_names<Average>()) {
        EXPECT_NEAR(averaged(metric, scores, labels, golden.at("num_labels").get<int64_t>(),
                             parse_enum<Average>(average)),
                    wanted.at(average).get<double>(), 1e-14)
            << name << " " << average;
      }
    }
  }
}

TEST(Ranking, DoesNotDependOnTheOrderOfTheSamples) {
  std::mt19937 random(3);
  std::vector<std::pair<double, double>> samples;
  for (int i = 0; i < 300; ++i)
    samples.emplace_back(static_cast<double>(random() % 40) / 7, random() % 3 == 2 ? 1.0 : 0.0);
  const auto both = [&] {
    Values scores, labels;
    for (const auto& [score, label] : samples) {
      scores.push_back(score);
      labels.push_back(label);
    }
    return std::pair(area_under_roc(scores, labels), average_precision(scores, labels));
  };
  const auto wanted = both();
  for (int i = 0; i < 20; ++i) {
    std::ranges::shuffle(samples, random);
    EXPECT_EQ(both(), wanted);
  }
}

TEST(Ranking, ClassesWithoutSamples) {
  const Values scores{0.5, 0.2, 0.3, 0.1, 0.8, 0.1, 0.7, 0.2, 0.1}, labels{1, 0, 0, 0, 1, 0, 1, 0, 0};
  EXPECT_THAT(message_of([&] { averaged(area_under_roc, scores, labels, 3, Average::macro); }),
              HasSubstr("class 2: the area under the ROC curve is not defined"));
  EXPECT_EQ(averaged(area_under_roc, scores, labels, 3, Average::weighted), 1);
  EXPECT_DOUBLE_EQ(averaged(average_precision, scores, labels, 3, Average::macro), 2.0 / 3);
  EXPECT_THAT(message_of([&] { averaged(area_under_roc, scores, labels, 2, Average::macro); }),
              HasSubstr("9 scores of 2 classes"));
}

}  // namespace
}  // namespace stretto::metrics
