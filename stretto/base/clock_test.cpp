#include "stretto/base/clock.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Clock, TextsOfTheWallClock) {
  EXPECT_EQ(utc_time(0), "1970-01-01 00:00:00");
  EXPECT_EQ(utc_time(1769860799.9), "2026-01-31 11:59:59");
  EXPECT_EQ(local_time(0).size(), utc_time(0).size());
}

TEST(Clock, TimesOfScopesAddUp) {
  double sum = 1;
  { const TimedScope timed(sum); }
  EXPECT_GT(sum, 1);
}

}  // namespace
}  // namespace stretto
