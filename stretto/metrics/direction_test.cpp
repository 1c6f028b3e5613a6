#include "stretto/metrics/direction.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"

namespace stretto::metrics {
namespace {

TEST(Direction, LossFallsAndScoresRise) {
  EXPECT_TRUE(better("loss", 0.1, 0.2));
  EXPECT_FALSE(better("loss", 0.2, 0.1));
  EXPECT_TRUE(better("eval_loss", 0.1, 0.2));
  EXPECT_TRUE(better("perplexity", 3, 4));
  EXPECT_FALSE(better("hard/perplexity", 4, 3));
  EXPECT_TRUE(better("bits_per_byte", 1.1, 1.2));
  for (const std::string& name : metric_names()) {
    if (name == "loss" || name == "perplexity" || name == "bits_per_byte") continue;
    EXPECT_TRUE(better(name, 0.9, 0.8)) << name;
    EXPECT_FALSE(better(name, 0.8, 0.9)) << name;
    EXPECT_FALSE(better(name, 0.8, 0.8)) << name;
  }
}

TEST(Direction, NanIsNeverBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* name : {"loss", "accuracy"}) {
    EXPECT_FALSE(better(name, nan, 0.5));
    EXPECT_TRUE(better(name, 0.5, nan));
    EXPECT_FALSE(better(name, nan, nan));
  }
}

TEST(Direction, UnknownNames) {
  EXPECT_THAT(
      message_of<ConfigError>([&] { direction("acuracy"); }),
      has_all("\"acuracy\" is not a metric; did you mean \"accuracy\"?", "metrics are loss, accuracy, f1"));
}

}  // namespace
}  // namespace stretto::metrics
