#include "stretto/tasks/classification_results.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/metrics/glue.h"

namespace stretto::tasks {
namespace {

using Rows = std::vector<double>;

Metrics metrics_of(const Tensor& logits, const Tensor& labels, ProblemType problem) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < logits.size(1); ++i) names.push_back("class " + std::to_string(i));
  const Metrics metrics =
      ClassificationResults(classification_rows(logits, labels, problem), names, {.problem = problem})
          .metrics();
  const auto possible = ClassificationResults::possible_metrics(problem, std::nullopt);
  for (const auto& [name, value] : metrics) EXPECT_THAT(possible, ::testing::Contains(name));
  return metrics;
}

// Expected values are computed by counting pairs, and precisions at each threshold.
TEST(ClassificationResults, RankSamplesByTheSecondOfTwoClasses) {
  const Tensor logits =
      at::tensor(Rows{0, 1, 0, 4, 2, 5.5, 1, 9}, at::kDouble).view({4, 2});  // by 1, 4, 3.5, 8
  const auto found =
      metrics_of(logits, at::tensor({0, 0, 1, 1}, at::kLong), ProblemType::single_label_classification);
  EXPECT_DOUBLE_EQ(found.at("auroc"), 0.75);
  EXPECT_DOUBLE_EQ(found.at("average_precision"), 0.5 + 0.5 * 2 / 3);
}

TEST(ClassificationResults, RankSamplesByEachOfSeveralClasses) {
  const Tensor logits = at::tensor(Rows{3, 0, 0, 0, 2, 1, 0, 1, 2, 2, 1, 0}, at::kDouble).view({4, 3});
  const auto of_one =
      metrics_of(logits, at::tensor({0, 1, 2, 2}, at::kLong), ProblemType::single_label_classification);
  EXPECT_DOUBLE_EQ(of_one.at("auroc"), (1 + 1 + 0.75) / 3);
  EXPECT_DOUBLE_EQ(of_one.at("average_precision"), (1 + 1 + (0.5 * 1 + 0.5 * 2 / 3)) / 3);
  const Tensor sets = at::tensor(Rows{1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0}, at::kDouble).view({4, 3});
  const auto of_any = metrics_of(logits, sets, ProblemType::multi_label_classification);
  EXPECT_DOUBLE_EQ(of_any.at("auroc"), (1 + 0.875 + 1) / 3);
}

TEST(ClassificationResults, AreNotRankedWhereThatIsNotDefined) {
  const Tensor logits = at::tensor(Rows{1, 0, 0, 1, 2, 0}, at::kDouble).view({3, 2});
  const Tensor all_of_one = at::zeros({3}, at::kLong);
  const auto found = metrics_of(logits, all_of_one, ProblemType::single_label_classification);
  EXPECT_FALSE(found.contains("auroc"));
  EXPECT_EQ(found.at("average_precision"), 0) << "as in scikit-learn";
  const auto overflowed =
      metrics_of(logits * NAN, at::tensor({0, 1, 1}, at::kLong), ProblemType::single_label_classification);
  EXPECT_FALSE(overflowed.contains("auroc") || overflowed.contains("average_precision"));
}

TEST(ClassificationResults, TheMetricsOfGlueAreThosePossible) {
  for (const metrics::GlueTask& task : metrics::glue_tasks()) {
    const bool scores = task.labels.empty();
    const auto problem = scores ? ProblemType::regression : ProblemType::single_label_classification;
    const int64_t width = scores ? 1 : std::ssize(task.labels);
    const Tensor logits =
        at::tensor(Rows{3, 1, 2, 0, 2, 9}, at::kDouble).slice(0, 0, 2 * width).view({2, width});
    const Tensor labels = at::tensor({1, 0}, scores ? at::kDouble : at::kLong);
    const Metrics found = ClassificationResults(classification_rows(logits, labels, problem),
                                                std::vector<std::string>(static_cast<size_t>(width), "class"),
                                                {.problem = problem, .glue_task = task.name})
                              .metrics();
    std::vector<std::string> names;
    for (const auto& [name, value] : found) names.push_back(name);
    EXPECT_THAT(ClassificationResults::possible_metrics(problem, task.name),
                ::testing::UnorderedElementsAreArray(names))
        << task.name;
  }
}

}  // namespace
}  // namespace stretto::tasks
