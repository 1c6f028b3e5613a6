#include "stretto/launch/output/shared_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SharedMessages::Clock::time_point now = SharedMessages::Clock::now();

TEST(SharedMessages, OneOfSeveralRanksIsShownOnce) {
  SharedMessages messages;
  messages.add(2, "stretto: error: no data", now);
  messages.add(1, "stretto: error: no data", now + 50ms);
  messages.add(1, "stretto: warning: slow", now + 60ms);
  EXPECT_EQ(messages.next_due(), now + 200ms);
  EXPECT_THAT(messages.take_due(now + 199ms), IsEmpty());
  EXPECT_THAT(messages.take_due(now + 200ms), ElementsAre("[ranks 1, 2] stretto: error: no data"));
  messages.add(3, "stretto: error: no data", now + 210ms);
  EXPECT_THAT(messages.take_all(now + 220ms), ElementsAre("[rank 1] stretto: warning: slow"));
  EXPECT_EQ(messages.next_due(), std::nullopt);
}

TEST(SharedMessages, MessagesOfRankZeroAreNotRepeated) {
  SharedMessages messages;
  messages.add(1, "stretto: error: no data", now);
  messages.shown_by_rank_0("stretto: error: no data", now + 10ms);
  messages.add(2, "stretto: error: no data", now + 20ms);
  EXPECT_THAT(messages.take_all(now + 30ms), IsEmpty());
  messages.add(2, "stretto: error: no data", now + 20s);
  EXPECT_THAT(messages.take_all(now + 21s), ElementsAre("[rank 2] stretto: error: no data"));
}

TEST(SharedMessages, ManyRanksAreCounted) {
  SharedMessages messages;
  for (int rank = 1; rank < 1000; ++rank) messages.add(rank, "x", now);
  EXPECT_THAT(messages.take_all(now), ElementsAre("[ranks 1, 2, 3, 4, 5, 6, 7, 8 and 991 more] x"));
}

TEST(SharedMessages, ConsequencesAreDropped) {
  SharedMessages messages;
  messages.add(1, "rank 3 has left", now);
  messages.add(2, "rank 3 has left", now);
  messages.add(3, "no such file", now);
  messages.drop_unless([](int rank) { return rank == 3; });
  EXPECT_THAT(messages.take_all(now), ElementsAre("[rank 3] no such file"));
}

}  // namespace
}  // namespace stretto::launch
