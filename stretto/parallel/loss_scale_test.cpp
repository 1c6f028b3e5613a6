#include "stretto/parallel/loss_scale.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::parallel {
namespace {

using ::testing::HasSubstr;

TEST(LossScale, GrowsAfterAnIntervalAndIsLoweredAtAnOverflow) {
  LossScale scale(LossScaleOptions{.init_scale = 8, .growth_interval = 3});
  scale.count_finite();
  scale.count_finite();
  EXPECT_EQ(scale.value(), 8);
  scale.count_overflow();
  EXPECT_EQ(scale.value(), 4);
  EXPECT_EQ(scale.skipped_steps(), 1);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(scale.value(), 4) << "the interval begins again after an overflow";
    scale.count_finite();
  }
  EXPECT_EQ(scale.value(), 8);
}

// DeepSpeed's DynamicLossScaler does the same: with a hysteresis of 2 the first overflow since the last
// growth does not lower the scale.
TEST(LossScale, HysteresisToleratesOverflowsUntilTheNextGrowth) {
  LossScale scale(LossScaleOptions{.init_scale = 64, .growth_interval = 2, .hysteresis = 2});
  std::vector<double> values;
  for (const char kind : std::string("ooofffofoo")) {
    kind == 'o' ? scale.count_overflow() : scale.count_finite();
    values.push_back(scale.value());
  }
  EXPECT_EQ(values, (std::vector<double>{64, 32, 16, 16, 32, 32, 32, 32, 16, 8}));
}

TEST(LossScale, StaysInItsRange) {
  LossScale low(LossScaleOptions{.init_scale = 3, .min_scale = 1});
  for (const double expected : {1.5, 1.0, 1.0}) {
    low.count_overflow();
    EXPECT_EQ(low.value(), expected);
  }
  constexpr double largest = std::numeric_limits<float>::max();
  LossScale high(LossScaleOptions{.init_scale = largest, .growth_interval = 1});
  high.count_finite();
  EXPECT_EQ(high.value(), largest) << "as torch's";
}

TEST(LossScale, KeepsOverflowingOnlySoOften) {
  LossScale scale(LossScaleOptions{.init_scale = 2});
  scale.count_overflow();
  for (int step = 0; step < 10; ++step) scale.count_overflow();
  scale.count_finite();
  for (int step = 0; step < 10; ++step) scale.count_overflow();
  EXPECT_THAT(message_of([&] { scale.count_overflow(); }),
              has_all("overflowed in 11 steps", "loss scale of 1", "min_scale"));
}

TEST(LossScale, ContinuesFromItsState) {
  const LossScaleOptions options = {.init_scale = 64, .growth_interval = 4, .hysteresis = 2};
  LossScale first(options);
  first.count_overflow();
  first.count_finite();
  State state;
  first.add_state(state);
  LossScale second(options);
  second.resume(state);
  for (const char kind : std::string("offffo")) {
    for (LossScale* scale : {&first, &second}) kind == 'o' ? scale->count_overflow() : scale->count_finite();
    EXPECT_EQ(second.value(), first.value());
    EXPECT_EQ(second.skipped_steps(), first.skipped_steps());
  }
  LossScale fixed(LossScaleOptions{.init_scale = 128, .dynamic = false});
  fixed.resume(state);
  EXPECT_EQ(fixed.value(), 128) << "the setting's";
}

TEST(LossScale, IsOneWhereItIsNotInUse) {
  LossScale none(std::nullopt);
  none.count_finite();
  EXPECT_EQ(none.value(), 1);
  State state;
  none.add_state(state);
  EXPECT_TRUE(state.scalars.empty());
  const Tensor loss = at::ones({});
  EXPECT_TRUE(scaled_loss(loss, none.value()).is_same(loss));
}

TEST(LossScale, WidensALossInFp16) {
  EXPECT_EQ(scaled_loss(at::full({}, 4, at::kHalf), 65'536).item<double>(), 262'144);
}

TEST(LossScale, RefusesOptionsOutOfRange) {
  const auto refuses = [](const LossScaleOptions& options, const char* name) {
    EXPECT_THAT(message_of<ConfigError>([&] { LossScale scale(options); }),
                HasSubstr(std::string("loss scale: ") + name));
  };
  refuses({.init_scale = 0}, "init_scale is 0");
  refuses({.growth_factor = 1}, "growth_factor is 1");
  refuses({.backoff_factor = 1}, "backoff_factor is 1");
  refuses({.growth_interval = 0}, "growth_interval is 0");
  refuses({.hysteresis = 0}, "hysteresis is 0");
  refuses({.init_scale = 1, .min_scale = 2}, "min_scale is 2");
}

}  // namespace
}  // namespace stretto::parallel
