#include "stretto/launch/process/signals.h"

#include <gmock/gmock.h>
#include <sys/ptrace.h>

#include "stretto/base/message_support.h"
#include "stretto/base/process.h"
#include "stretto/launch/launch_fixture.h"

// The launcher's reaction to signals that are sent to it.
namespace stretto::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

class Signals : public Launch {
 protected:
  // Starts ranks that run until they are ended; `traps` are shell traps.
  void start_ranks(const std::string& traps, const LaunchOptions& like = {}) {
    LaunchOptions options = like;
    options.command = {"sh", "-c",
                       traps + "; echo $$ > " + here("pid$RANK") + "; while :; do sleep 0.05; done"};
    options.ranks = 2;
    options.pin = false;
    start(options);
    first_ = number_in("pid0"), second_ = number_in("pid1");
  }
  bool has_output(const std::string& words) {
    return becomes_true([&] { return text("out").find(words) != std::string::npos; });
  }
  pid_t first_ = 0, second_ = 0;
};

TEST_F(Signals, EachSignalSendsOneSigtermAndRanksMayExitWithZero) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const std::string file : {"pid0", "pid1", "out", "err"}) std::filesystem::remove(here(file));
    start_ranks("trap 'echo saved; exit 0' TERM; trap 'echo no' INT HUP");
    ::kill(launcher_, signal);
    EXPECT_EQ(exit_code(), 0);
    EXPECT_THAT(text("out"),
                AllOf(HasSubstr("saved\n"), HasSubstr("[rank 1] saved\n"), Not(HasSubstr("no\n"))));
    EXPECT_THAT(text("err"),
                AllOf(HasSubstr(signal_text(signal) + ": stopping; ranks have 60 s to finish their step"),
                      HasSubstr("and save; a second Ctrl-C kills them at once")));
  }
}

TEST_F(Signals, RanksMaySaveDuringTheGracePeriod) {
  LaunchOptions options;
  options.stop.failure_grace = 100ms;
  start_ranks("trap 'sleep 1; echo saved; exit 0' TERM", options);
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(text("out"), AllOf(HasSubstr("saved\n"), HasSubstr("[rank 1] saved\n")));
}

TEST_F(Signals, RanksAreKilledAfterTheGrace) {
  LaunchOptions options;
  options.stop.grace = 300ms;
  start_ranks("trap 'echo no' TERM", options);
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
  EXPECT_FALSE(runs(first_) || runs(second_));
  EXPECT_THAT(text("err"), AllOf(HasSubstr("ranks have 0.3 s to finish"),
                                 HasSubstr("rank 1 did not exit within 0.3 s"), Not(HasSubstr("error"))));
}

TEST_F(Signals, RanksWithoutAHandlerEndWithoutAnError) {
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const std::string file : {"pid0", "pid1", "err"}) std::filesystem::remove(here(file));
    start_ranks("true");
    ::kill(launcher_, signal);
    EXPECT_EQ(exit_code(), 128 + signal);
    EXPECT_FALSE(runs(first_) || runs(second_));
    EXPECT_THAT(text("err"), Not(HasSubstr("error")));
  }
}

TEST_F(Signals, ASecondSignalEndsRanksAtOnce) {
  start_ranks("trap 'echo no' TERM");
  ::kill(launcher_, SIGINT);
  EXPECT_TRUE(has_output("no\n"));
  ::kill(launcher_, SIGINT);
  EXPECT_EQ(exit_code(), 128 + SIGINT);
  EXPECT_FALSE(runs(first_) || runs(second_));
}

// A rank that saves at SIGTERM may then wait for a dead peer.
TEST_F(Signals, ARankThatFailsWhileStoppingEndsTheOthers) {
  LaunchOptions options;
  options.stop.grace = 1h;
  start_ranks("trap '[ $RANK = 1 ] && exit 9; echo waiting' TERM", options);
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 9);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("error: rank 1 (process "), HasSubstr("ended with exit code 9")));
}

TEST_F(Signals, SigusrIsForwardedAndEndsNoRank) {
  start_ranks("trap 'echo saved now' USR1; trap 'exit 0' TERM");
  ::kill(launcher_, SIGUSR1);
  EXPECT_TRUE(has_output("[rank 1] saved now\n"));
  EXPECT_TRUE(runs(first_) && runs(second_));
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(Signals, SigusrIsNotSentToProgramsThatItWouldKill) {
  start_ranks("trap 'exit 0' TERM");
  ::kill(launcher_, SIGUSR1);
  EXPECT_TRUE(becomes_true([&] {
    return ::testing::Value(
        text("err"), has_all("SIGUSR1 (User defined signal 1) was not forwarded to rank 1", "not handle it"));
  }));
  EXPECT_TRUE(runs(first_) && runs(second_));
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(Signals, ASignalDuringTheStartStopsIt) {
  start(shell("touch " + here("rank$RANK") + "; [ $RANK = 0 ] && kill -TERM $PPID; exec sleep 1000", 400));
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
  EXPECT_FALSE(has("rank399"));
}

TEST_F(Signals, SigusrBeforeAHandlerWaitsForItInStrettosOwnPrograms) {
  start({.command = {"sleep", "1"}, .ranks = 1, .pin = false, .own_program = true});
  std::this_thread::sleep_for(300ms);
  ::kill(launcher_, SIGUSR1);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_EQ(text("err"), "");
}

// A launcher that was started with SIGUSR1 blocked must not pass that mask on to other programs.
TEST_F(Signals, OtherProgramsStartWithTheUsualMask) {
  start(shell("kill -USR1 $$; echo lives", 1), [] { block_save_signal(); });
  EXPECT_EQ(exit_code(), 128 + SIGUSR1);
  EXPECT_EQ(text("out"), "");
}

// The launcher needs its own process group: SIGTSTP has no effect on an orphaned one.
TEST_F(Signals, SigtstpStopsTheWholeJobAndSigcontContinuesIt) {
  // The shells only wait: one that is starting a process by vfork when it is stopped remains in state D.
  LaunchOptions options = shell("sleep 1000 & trap 'kill $!; echo saved; exit 0' TERM; echo $$ > " +
                                    here("pid$RANK") + "; while :; do wait; done",
                                2);
  options.stop.grace = 2s;
  start(options, [] { ::setpgid(0, 0); });
  const std::vector<pid_t> all = {launcher_, number_in("pid0"), number_in("pid1")};
  const auto stopped = [&](pid_t pid) { return process_state(pid) == "T"; };
  const auto pauses = [&] {
    const std::string err = text("err"), line = "the job was paused for ";
    int count = 0;
    for (size_t at = err.find(line); at != std::string::npos; at = err.find(line, at + 1)) ++count;
    return count;
  };
  for (int i = 0; i < 2; ++i) {
    ::kill(launcher_, SIGTSTP);
    EXPECT_TRUE(becomes_true([&] { return std::ranges::all_of(all, stopped); }));
    ::kill(launcher_, SIGCONT);
    EXPECT_TRUE(becomes_true([&] { return std::ranges::none_of(all, stopped); }));
    // Until then SIGTSTP has its default action, which stops only the launcher.
    EXPECT_TRUE(becomes_true([&] { return pauses() == i + 1; }));
  }
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(text("out"), AllOf(HasSubstr("saved\n"), HasSubstr("[rank 1] saved\n")));
}

// The pause is longer than the grace of ranks that save.
TEST_F(Signals, APauseDoesNotCountAsGrace) {
  LaunchOptions options =
      shell("trap 'echo saving; sleep 0.2; sleep 0.2; echo saved; exit 0' TERM; echo $$ > " +
                here("pid$RANK") + "; while :; do sleep 0.05; done",
            1);
  options.stop.grace = 2s;
  start(options, [] { ::setpgid(0, 0); });
  number_in("pid0");
  ::kill(launcher_, SIGTERM);
  EXPECT_TRUE(has_output("saving\n"));
  ::kill(launcher_, SIGTSTP);
  EXPECT_TRUE(becomes_true([&] { return process_state(launcher_) == "T"; }));
  std::this_thread::sleep_for(2500ms);
  ::kill(launcher_, SIGCONT);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_EQ(text("out"), "saving\nsaved\n");
}

// A process under a debugger survives SIGKILL, like one that waits for a dead disk.
TEST_F(Signals, TheLauncherExitsIfSigkillDoesNotEndARank) {
  LaunchOptions options;
  options.stop.death_patience = 300ms;
  start_ranks("trap 'echo no' TERM", options);
  if (::ptrace(PTRACE_SEIZE, first_, nullptr, nullptr) != 0) GTEST_SKIP() << "ptrace is not permitted";
  ::kill(launcher_, SIGINT);
  EXPECT_TRUE(has_output("[rank 1] no\n"));
  ::kill(launcher_, SIGINT);
  EXPECT_EQ(exit_code(), 128 + SIGINT);
  EXPECT_THAT(text("err"), ::testing::ContainsRegex(
                               "error: rank 0 \\(process [0-9]+\\) did not end within 0.3 s of SIGKILL"));
  ::waitpid(first_, nullptr, 0);
}

}  // namespace
}  // namespace stretto::launch
