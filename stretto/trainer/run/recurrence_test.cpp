#include "stretto/trainer/run/recurrence.h"

#include <gtest/gtest.h>

namespace stretto::trainer {
namespace {

// The steps of `total`, 7 per epoch, after which `every` is due; an evaluation follows every third step.
std::vector<int64_t> due_steps(const char* every, int64_t total) {
  const Recurrence recurrence(every, /*main_rank=*/true);
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= total; ++step) {
    StepReport report;
    report.step = step;
    report.epochs_before = static_cast<double>(step - 1) / 7;
    report.epochs = static_cast<double>(step) / 7;
    const auto evaluation = step % 3 == 0 ? std::optional(step / 3) : std::nullopt;
    if (recurrence.due(report, /*requested=*/false, evaluation)) steps.push_back(step);
  }
  return steps;
}

using Steps = std::vector<int64_t>;

TEST(Recurrence, FollowsFromTheReport) {
  EXPECT_EQ(due_steps("4", 14), (Steps{4, 8, 12}));
  EXPECT_EQ(due_steps("epoch", 21), (Steps{7, 14, 21}));
  EXPECT_EQ(due_steps("2ep", 28), (Steps{14, 28}));
  EXPECT_EQ(due_steps("0.5ep", 14), (Steps{4, 7, 11, 14}));
  EXPECT_EQ(due_steps("eval", 9), (Steps{3, 6, 9}));
  EXPECT_EQ(due_steps("2eval", 14), (Steps{6, 12}));
  EXPECT_EQ(due_steps("never", 14), Steps{});
  EXPECT_EQ(due_steps("1h", 14), Steps{});
}

// In floating point, 0.3 / 0.1 is 2.9999999999999996.
TEST(Recurrence, FractionsOfEpochsAreNotLate) {
  const Recurrence recurrence("0.1ep", true);
  StepReport report;
  int64_t due = 0;
  for (int step = 1; step <= 10; ++step) {
    report.epochs_before = report.epochs;
    report.epochs = static_cast<double>(step) / 10;
    due += recurrence.due(report, false);
  }
  EXPECT_EQ(due, 10);
}

TEST(Recurrence, TimeIsMeasuredByTheFirstRank) {
  Recurrence first("0.000001s", true), second("0.000001s", false);
  while (!first.requested()) {
  }
  EXPECT_FALSE(second.requested());
  EXPECT_TRUE(second.due({}, /*requested=*/true));
  StepReport sixth;
  sixth.step = 6;
  EXPECT_FALSE(Recurrence("5", true).due(sixth, /*requested=*/true));
}

}  // namespace
}  // namespace stretto::trainer
