#include "stretto/base/weighted_mean.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(WeightedMean, TakeResetsIt) {
  WeightedMean mean;
  EXPECT_TRUE(std::isnan(mean.mean()));
  mean.add(3);
  mean.add(6, 2);
  EXPECT_EQ(mean.mean(), 5);
  mean.add(WeightedMean{.sum = 5, .weight = 1});
  EXPECT_EQ(mean.take(), 5);
  EXPECT_TRUE(std::isnan(mean.take()));
}

}  // namespace
}  // namespace stretto
