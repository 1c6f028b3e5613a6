#include "stretto/trainer/run/step_guard.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::trainer {
namespace {

using Verdict = StepGuard::Verdict;

class StepGuardTest : public ::testing::Test {
 protected:
  StepGuardTest() {
    config_.on_spike = "skip";
    config_.spike_factor = 4;
  }
  // Takes steps with losses around `usual` until the guard has running means.
  void learn(StepGuard& guard, double usual) {
    for (step_ = 0; step_ < 40; ++step_) {
      const double loss = usual + (step_ % 2 == 0 ? 0.1 : -0.1);
      ASSERT_EQ(guard.judge(loss, 1, step_, ""), Verdict::take) << "loss " << loss;
    }
  }
  TrainingConfig config_;
  int64_t step_ = 0;
};

TEST_F(StepGuardTest, ALossFarAboveItsMeanIsASpike) {
  StepGuard guard(config_);
  learn(guard, 2);
  EXPECT_EQ(guard.judge(7.5, 1, step_, ""), Verdict::take);
  EXPECT_EQ(guard.judge(9.5, 1, step_, ""), Verdict::skip);
  EXPECT_EQ(guard.judge(2, 5, step_, ""), Verdict::skip) << "the norm";
}

TEST_F(StepGuardTest, NegativeLossesAreJudgedByTheirDistance) {
  StepGuard guard(config_);
  learn(guard, -2);
  EXPECT_EQ(guard.judge(-9, 1, step_, ""), Verdict::take) << "a lower loss is none";
  EXPECT_EQ(guard.judge(3, 1, step_, ""), Verdict::take);
  EXPECT_EQ(guard.judge(7, 1, step_, ""), Verdict::skip);
}

// The checkpoint was saved before the rollback to it.
TEST_F(StepGuardTest, ARestoredStateJudgesTheSameAndARollbackStaysCounted) {
  config_.on_nonfinite = "rollback";
  config_.rollback_lr_factor = 0.5;
  StepGuard guard(config_);
  learn(guard, 2);
  for (int skips = 0; skips < 10; ++skips) EXPECT_EQ(guard.judge(9.5, 1, step_, ""), Verdict::skip);
  State state;
  guard.add_state(state);
  StepGuard resumed(config_);
  resumed.resume(state);
  EXPECT_THROW(resumed.judge(9.5, 1, step_, ""), Error) << "the eleventh in a row";
  EXPECT_EQ(guard.judge(NAN, 1, step_, ""), Verdict::rollback);
  guard.resume(state);
  EXPECT_EQ(guard.lr_scale(), 0.5);
}

// Invalid operations give NaN with the sign bit set on x86.
TEST_F(StepGuardTest, ALossThatIsNaNHasNoSign) {
  EXPECT_THAT(message_of([&] { StepGuard(config_).judge(-std::nan(""), 1, 3, ""); }),
              ::testing::HasSubstr("step 3: the loss (nan) is not finite"));
  EXPECT_THAT(message_of([&] { StepGuard(config_).judge(-HUGE_VAL, 1, 3, ""); }),
              ::testing::HasSubstr("step 3: the loss (-inf) is not finite"));
}

}  // namespace
}  // namespace stretto::trainer
