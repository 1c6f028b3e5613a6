#include "stretto/launch/restart.h"

#include <gmock/gmock.h>

#include "stretto/launch/launch_fixture.h"

namespace stretto::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

TEST(RestartDelay, DoublesUpToItsLimit) {
  const RestartOptions options;
  EXPECT_EQ(restart_delay(options, 1), 1s);
  EXPECT_EQ(restart_delay(options, 2), 2s);
  EXPECT_EQ(restart_delay(options, 5), 16s);
  EXPECT_EQ(restart_delay(options, 6), 30s);
  EXPECT_EQ(restart_delay(options, 1'000'000), 30s);
}

LaunchOptions restarting(const std::string& script, int ranks, int max_restarts) {
  LaunchOptions options = shell(script, ranks);
  options.restart = {.max_restarts = max_restarts, .first_delay = 20ms};
  return options;
}

using Restart = Launch;

TEST_F(Restart, AFailedGroupIsRestartedAsAWhole) {
  // Rank 1 fails in the first two starts; rank 0 would wait forever.
  LaunchOptions options = restarting(
      "echo life $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS at $STRETTO_STORE $STRETTO_SECRET; [ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; ready=" +
          here("ready$TORCHELASTIC_RESTART_COUNT") +
          "; [ $RANK = 0 ] && { touch $ready; exec sleep 1000; }; while ! [ -e $ready ]; do sleep 0.01; done; exit 7",
      2, 3);
  options.log_folder = here("logs");
  EXPECT_EQ(launch(options), 0);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("warning: restart 1 of 3 in 0.02 s, because rank 1 (process "),
                                 HasSubstr(") ended with exit code 7"), HasSubstr("restart 2 of 3 in 0.04 s"),
                                 Not(HasSubstr("restart 3"))));
  for (const int rank : {0, 1}) {
    const std::string log = logged(std::to_string(rank));
    const auto lives = split(log, '\n');
    ASSERT_EQ(lives.size(), 4u) << log;
    for (int life = 0; life < 3; ++life) {
      EXPECT_TRUE(lives[static_cast<size_t>(life)].starts_with(fmt::format("life {} of 3 at ", life))) << log;
    }
    EXPECT_NE(lives[0].substr(7), lives[1].substr(7)) << "each start has a new store and a new secret";
  }
}

TEST_F(Restart, AJobThatKeepsFailingIsGivenUp) {
  EXPECT_EQ(launch(restarting("echo life >> " + here("lives") + "; exit 5", 1, 2)), 5);
  EXPECT_EQ(text("lives"), "life\nlife\nlife\n");
  EXPECT_THAT(text("err"), HasSubstr("error: giving up after 2 restarts"));
}

TEST_F(Restart, UsageErrorsAreNotRepeated) {
  EXPECT_EQ(launch(restarting("echo life >> " + here("lives") + "; exit 2", 1, 2)), 2);
  EXPECT_EQ(text("lives"), "life\n");
}

TEST_F(Restart, AJobThatTheUserEndsIsNotRestarted) {
  start(restarting("echo life >> " + here("lives") + "; echo $$ > " + here("pid$RANK") + "; exec sleep 1000",
                   1, 2));
  number_in("pid0");
  ::kill(launcher_, SIGINT);
  EXPECT_EQ(exit_code(), 128 + SIGINT);
  EXPECT_EQ(text("lives"), "life\n");
}

TEST_F(Restart, TheWaitForARestartCanBeEnded) {
  LaunchOptions options = restarting("exit 5", 1, 2);
  options.restart.first_delay = 1000s;
  options.restart.longest_delay = 1000s;
  start(options);
  EXPECT_TRUE(
      becomes_true([&] { return has("err") && text("err").find("restart 1 of 2") != std::string::npos; }));
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
}

}  // namespace
}  // namespace stretto::launch
