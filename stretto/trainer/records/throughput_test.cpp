#include "stretto/trainer/records/throughput.h"

#include <gtest/gtest.h>

namespace stretto::trainer {
namespace {

Throughput::Clock::time_point at(int seconds) {
  return Throughput::Clock::time_point(std::chrono::seconds(seconds));
}

TEST(ThroughputTest, IsAMeanSinceTheFirstStepOrAPause) {
  Throughput throughput(std::nullopt);
  EXPECT_FALSE(throughput.rates());
  throughput.add(8, 80, at(100));
  EXPECT_FALSE(throughput.rates());
  throughput.add(8, 80, at(101));
  throughput.add(8, 40, at(104));
  EXPECT_DOUBLE_EQ(throughput.rates()->samples, 4);
  EXPECT_DOUBLE_EQ(throughput.rates()->tokens, 30);
  throughput.pause();
  throughput.add(8, 80, at(200));
  EXPECT_FALSE(throughput.rates());
  throughput.add(8, 80, at(202));
  EXPECT_DOUBLE_EQ(throughput.rates()->samples, 4);
}

TEST(ThroughputTest, IsAMeanOfTheLastSteps) {
  Throughput throughput(2);
  throughput.add(8, 0, at(0));
  throughput.add(8, 0, at(1));
  EXPECT_DOUBLE_EQ(throughput.rates()->samples, 8);
  throughput.add(4, 0, at(4));
  EXPECT_DOUBLE_EQ(throughput.rates()->samples, 3);
  throughput.add(8, 0, at(5));
  EXPECT_DOUBLE_EQ(throughput.rates()->samples, 3);  // 12 in 4 s
  throughput.add(8, 0, at(6));
  EXPECT_DOUBLE_EQ(throughput.rates()->samples, 8);
}

}  // namespace
}  // namespace stretto::trainer
