#include <gtest/gtest.h>

#include "stretto/optim/schedules/constant.h"
#include "stretto/optim/schedules/linear_with_warmup.h"

namespace stretto::optim {
namespace {

TEST(LinearWithWarmup, AsTransformers) {
  const auto schedule = linear_with_warmup({.num_warmup_steps = 4});
  schedule->start({.lr = 2}, 20);
  EXPECT_EQ(schedule->rates(0).lr, 0);
  EXPECT_EQ(schedule->rates(1).lr, 0.5);
  EXPECT_EQ(schedule->rates(4).lr, 2);
  EXPECT_EQ(schedule->rates(12).lr, 1);
  EXPECT_EQ(schedule->rates(20).lr, 0);
  EXPECT_EQ(schedule->rates(30).lr, 0);
  EXPECT_FALSE(schedule->rates(1).momentum.has_value());
}

TEST(LinearWithWarmup, ARatioIsOfTheStepsAtItsStart) {
  const auto schedule = linear_with_warmup({.warmup_ratio = 0.15});
  schedule->start({.lr = 1}, 20);
  EXPECT_EQ(schedule->rates(3).lr, 1);
  schedule->set_total_steps(37);
  EXPECT_EQ(schedule->rates(3).lr, 1);
  EXPECT_EQ(schedule->rates(20).lr, 0.5);
}

TEST(Constant, IsTheOptimizersOwnRate) {
  const auto schedule = constant();
  schedule->start({.lr = 0.3, .momentum = 0.9}, 5);
  EXPECT_EQ(schedule->rates(0).lr, 0.3);
  EXPECT_EQ(schedule->rates(100).lr, 0.3);
  EXPECT_TRUE(schedule->state().is_null());
}

}  // namespace
}  // namespace stretto::optim
