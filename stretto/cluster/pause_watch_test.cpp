#include "stretto/cluster/pause_watch.h"

#include <gtest/gtest.h>

namespace stretto::cluster {
namespace {

using namespace std::chrono_literals;

TEST(PauseWatch, DistinguishesAStoppedProcessFromASleepingOne) {
  PauseWatch pauses;
  const auto start = PauseWatch::Clock::now();
  EXPECT_EQ(pauses.look(start + 1s), 0s);
  EXPECT_EQ(pauses.look(start + 2900ms), 0s) << "a loaded machine wakes a sleeper late";
  EXPECT_GE(pauses.look(start + 3600s), 3590s);
  EXPECT_EQ(pauses.look(start + 3601s), 0s);
}

}  // namespace
}  // namespace stretto::cluster
