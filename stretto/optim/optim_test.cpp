#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/optim/optimizer.h"
#include "stretto/optim/schedule.h"

namespace stretto::optim {
namespace {

TEST(Schedule, LinearWithWarmupAsTransformers) {
  const ScheduleOptions options = {"LinearWithWarmup", 4, 20};
  EXPECT_EQ(schedule_factor(options, 0), 0);
  EXPECT_EQ(schedule_factor(options, 1), 0.25);
  EXPECT_EQ(schedule_factor(options, 4), 1);
  EXPECT_EQ(schedule_factor(options, 12), 0.5);
  EXPECT_EQ(schedule_factor(options, 20), 0);
  EXPECT_EQ(schedule_factor(options, 30), 0);
  EXPECT_EQ(schedule_factor({"Constant", 4, 20}, 0), 1);
  EXPECT_THROW(schedule_factor({"Cosine", 0, 1}, 0), ConfigError);
}

TEST(Optimizer, StepsItsRangesOnlyAndDecaysWhereTold) {
  const auto optimizer = sgd({.lr = 0.5, .weight_decay = 0.1});
  const Buffers buffers = {at::ones({6}), at::ones({6}), {}};
  optimizer->bind(buffers, {{0, 2, true}, {4, 5, false}, {5, 6, false, 0.1}}, plain_memory());
  optimizer->step(1.0, 2.0);
  EXPECT_TRUE(at::allclose(buffers.master, at::tensor({-0.05f, -0.05f, 1.0f, 1.0f, 0.0f, 0.9f}), 0, 1e-6));
  EXPECT_TRUE(at::equal(buffers.grad, at::tensor({0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f})));
  EXPECT_EQ(optimizer->steps_done(), 1);
}

TEST(Optimizer, MisuseIsRefused) {
  EXPECT_THROW(adamw({})->step(1, 1), Error);
  EXPECT_THROW(sgd({.nesterov = true}), ConfigError);
}

}  // namespace
}  // namespace stretto::optim
