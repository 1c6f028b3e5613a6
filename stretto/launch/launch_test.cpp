#include "stretto/launch/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"
#include "stretto/launch/launch_fixture.h"
#include "stretto/launch/process/placement.h"
#include "stretto/launch/process/spawn.h"

namespace stretto::launch {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(Launch, EveryRankGetsItsNumbers) {
  LaunchOptions options{.command = {"/usr/bin/env"}, .ranks = 3, .log_folder = here("logs")};
  options.environment["MINE"] = "too";
  EXPECT_EQ(launch(options), 0);
  for (const std::string& rank : std::vector<std::string>{"0", "1", "2"}) {
    const std::string variables = "\n" + logged(rank);
    const std::vector<std::string> all = {"RANK=" + rank,
                                          "LOCAL_RANK=" + rank,
                                          "WORLD_SIZE=3",
                                          "LOCAL_WORLD_SIZE=3",
                                          "GROUP_RANK=0",
                                          "MASTER_ADDR=127.0.0.1",
                                          "OMP_NUM_THREADS=1",
                                          "MINE=too",
                                          "STRETTO_LOG_FILE=" + here("logs/training_") + rank + ".log"};
    for (const std::string& expected : all) EXPECT_THAT(variables, HasSubstr("\n" + expected + "\n"));
    EXPECT_THAT(variables, AllOf(HasSubstr("\nMASTER_PORT="), HasSubstr("\nSTRETTO_STORE=127.0.0.1:"),
                                 HasSubstr("\nSTRETTO_SECRET="), HasSubstr("\nTORCHELASTIC_RUN_ID=")));
  }
  EXPECT_THAT(text("out"), AllOf(StartsWith(logged("0").substr(0, 20)), Not(HasSubstr("\nRANK=1\n"))));
}

TEST_F(Launch, CollectivesWaitLongerThanTheLauncher) {
  LaunchOptions options = shell("echo ${STRETTO_COLLECTIVE_TIMEOUT-unset}", 1);
  const auto printed = [&](const std::string& variable) {
    std::filesystem::remove(here("out"));
    start(options, [&] {
      variable.empty() ? ::unsetenv("STRETTO_COLLECTIVE_TIMEOUT")
                       : ::setenv("STRETTO_COLLECTIVE_TIMEOUT", variable.c_str(), 1);
    });
    EXPECT_EQ(exit_code(), 0);
    return text("out");
  };
  EXPECT_EQ(printed(""), "unset\n");
  options.hang_timeout = std::chrono::seconds(400);
  EXPECT_EQ(printed(""), "800\n");
  EXPECT_EQ(printed("50"), "50\n");
  options.collective_timeout = std::chrono::seconds(7);
  EXPECT_EQ(printed("50"), "7\n");
}

TEST_F(Launch, ASignalEndsTheStartOfManyRanks) {
  LaunchOptions options = shell("touch started; exec sleep 1000", 400);
  options.stop.grace = std::chrono::hours(1);
  start(options, [&] { EXPECT_EQ(::chdir(folder_.path().c_str()), 0); });
  ASSERT_TRUE(becomes_true([&] { return has("started"); }));
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
}

// The launcher is stopped meanwhile, so that it finds the end of the rank and the signals at once.
TEST_F(Launch, ASignalAfterTheEndOfAllRanksLeavesTheirResult) {
  for (const int code : {0, 3}) {
    const std::string pid = fmt::format("pid{}", code), end = here(fmt::format("end{}", code));
    LaunchOptions options =
        shell(fmt::format("echo $$ > {}; echo runs{}; until [ -e {} ]; do sleep 0.01; done; exit {}",
                          here(pid), code, end, code),
              1);
    options.stop.exit_code = 75;
    start(options);
    const pid_t rank = number_in(pid);
    // The launcher has started all ranks: a signal during the start ends the job. The file may still have the
    // output of the launch before.
    ASSERT_TRUE(
        becomes_true([&] { return text("out").find(fmt::format("runs{}", code)) != std::string::npos; }));
    ::kill(launcher_, SIGSTOP);
    ASSERT_TRUE(becomes_true([&] { return process_state(launcher_) == "T"; }));
    write_file_atomic(end, "");
    ASSERT_TRUE(becomes_true([&] { return !runs(rank); }));
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCONT}) ::kill(launcher_, signal);
    EXPECT_EQ(exit_code(), code);
  }
}

TEST_F(Launch, AfterAUsageErrorNothingElseIsReported) {
  const std::string script =
      "[ $RANK = 0 ] && { echo 'stretto: error: r.yaml:3: no such key' >&2; echo $$ > " + here("pid") +
      "; exit 2; }; trap '' TERM; while ! [ -s " + here("pid") + " ] || kill -0 $(cat " + here("pid") +
      ") 2>&-; do sleep 0.01; done; echo \"[rank 1] stretto: error: rank 0 has left the group\" >&2; exit 1";
  LaunchOptions options = shell(script, 2);
  options.own_program = true;
  EXPECT_EQ(launch(options), 2);
  EXPECT_EQ(text("err"), "stretto: error: r.yaml:3: no such key\n");
  std::filesystem::remove(here("err"));
  std::filesystem::remove(here("pid"));
  options.own_program = false;
  EXPECT_EQ(launch(options), 2);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("ended with exit code 2"), Not(HasSubstr("has left the group"))));
}

TEST_F(Launch, ExitCodeAndLastLinesOfTheFirstFailureArePassedOn) {
  LaunchOptions options = shell("[ $RANK = 1 ] || exec sleep 1000; seq 12; exit 7", 2);
  options.log_folder = here("logs");
  EXPECT_EQ(launch(options), 7);
  EXPECT_THAT(text("err"),
              AllOf(HasSubstr("error: rank 1 (process "), HasSubstr(") ended with exit code 7"),
                    HasSubstr(here("logs/training_1.log")), HasSubstr("  | 3\n"), HasSubstr("  | 12\n"),
                    Not(HasSubstr("  | 2\n")), HasSubstr("stopping the other ranks")));
}

TEST_F(Launch, LastLinesThatWereShownAreNotRepeated) {
  LaunchOptions options = shell("[ $RANK = 1 ] || exec sleep 1000; echo plain; echo bad >&2; exit 7", 2);
  EXPECT_EQ(launch(options), 7);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("[rank 1] bad\n"), HasSubstr("not shown above:\n  | plain\n"),
                                 Not(HasSubstr("  | bad"))))
      << "standard output is another file";
  std::filesystem::remove(here("err"));
  start(options, [] { ::dup2(STDERR_FILENO, STDOUT_FILENO); });
  EXPECT_EQ(exit_code(), 7);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("[rank 1] plain\n"), Not(HasSubstr("  | "))));
}

TEST_F(Launch, DeathBySignalIsNamedAndTheOthersAreStopped) {
  const std::string script = "echo $$ > " + here("pid$RANK") + "; [ $RANK = 2 ] && { while ! [ -s " +
                             here("pid0") + " ]; do sleep 0.01; done; kill -SEGV $$; }; exec sleep 1000";
  start(shell(script, 3));
  const pid_t other = number_in("pid0");
  EXPECT_EQ(exit_code(), 128 + SIGSEGV);
  EXPECT_THAT(text("err"), HasSubstr("was killed by SIGSEGV (Segmentation fault)"));
  EXPECT_FALSE(runs(other));
}

TEST_F(Launch, ABusErrorIsExplained) {
  EXPECT_EQ(launch(shell("kill -BUS $$", 1)), 128 + SIGBUS);
  EXPECT_THAT(text("err"),
              has_all("was killed by SIGBUS (Bus error)", "mapped file was truncated", "disk or memory"));
}

TEST_F(Launch, RanksThatIgnoreSigtermAreKilledAfterTheGrace) {
  LaunchOptions options =
      shell("[ $RANK = 0 ] && { trap '' TERM; echo > " + here("ready") + "; sleep 1000; }; while ! [ -e " +
                here("ready") + " ]; do sleep 0.01; done; exit 3",
            2);
  EXPECT_EQ(launch(options), 3);  // rank 0 would sleep for 1000 s
  EXPECT_THAT(text("err"), HasSubstr("rank 0 did not exit within 0.5 s of SIGTERM: killed"));
}

TEST_F(Launch, ChildrenOfARankEndWithIt) {
  EXPECT_EQ(launch(shell("sleep 1000 & echo $! > " + here("grandchild"), 1)), 0);
  const pid_t grandchild = number_in("grandchild");
  EXPECT_TRUE(becomes_true([&] { return !runs(grandchild); }));
}

// The process has left the rank's process group and keeps the rank's standard output open.
TEST_F(Launch, AProcessThatOutlivesItsRankDoesNotBlockTheLauncher) {
  start(shell("setsid yes & echo $! > " + here("daemon") + "; sleep 0.2", 1), [] {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
  });
  const pid_t daemon = number_in("daemon");
  EXPECT_EQ(exit_code(), 0);
  EXPECT_TRUE(becomes_true([&] { return !runs(daemon); })) << "it writes to a closed pipe";
}

// A closed pipe, as of `stretto generate -N 2 | head`: one message, by the rank, of a program of stretto.
TEST_F(Launch, ARankThatNobodyReadsReportsItself) {
  LaunchOptions options = shell(
      "[ $RANK = 1 ] && exec sleep 1000; trap '' PIPE; while echo x 2>/dev/null; do :; done; "
      "echo 'stretto: error: cannot write' >&2; exit 1",
      2);
  const auto close_output = [] {
    std::array<int, 2> ends = {};
    if (::pipe(ends.data()) != 0) ::_exit(99);
    ::close(ends[0]);
    ::dup2(ends[1], STDOUT_FILENO);
  };
  options.own_program = true;
  start(options, close_output);
  EXPECT_EQ(exit_code(), 1);
  EXPECT_EQ(text("err"), "stretto: error: cannot write\n");
  options.own_program = false;
  start(options, close_output);
  EXPECT_EQ(exit_code(), 1);
  EXPECT_THAT(text("err"), HasSubstr("ended with exit code 1"));
}

TEST_F(Launch, RanksDieWithAKilledLauncher) {
  start(shell("trap '' TERM INT HUP; echo $$ > " + here("pid$RANK") + "; while :; do sleep 0.1; done", 2));
  const pid_t first = number_in("pid0"), second = number_in("pid1");
  ASSERT_TRUE(runs(first) && runs(second));
  ::kill(launcher_, SIGKILL);
  EXPECT_EQ(exit_code(), -SIGKILL);
  EXPECT_TRUE(becomes_true([&] { return !runs(first) && !runs(second); }));
}

TEST_F(Launch, NohupIsHonoured) {
  start(shell("echo $$ > " + here("pid$RANK") + "; sleep 0.3; echo done", 1),
        [] { ::signal(SIGHUP, SIG_IGN); });
  number_in("pid0");
  ::kill(launcher_, SIGHUP);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_EQ(text("out"), "done\n");
}

TEST_F(Launch, RanksArePinnedOnRequest) {
  const std::vector<int> cores = available_cores();
  if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
  LaunchOptions options = shell("grep Cpus_allowed_list /proc/self/status", 2);
  options.log_folder = here("logs");
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  options.pin = true;
  EXPECT_EQ(launch(options), 0);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(text(fmt::format("logs/training_{}.log", rank)),
                EndsWith(fmt::format("\t{}\n", cores[static_cast<size_t>(rank)])));
  }
}

TEST_F(Launch, MoreRanksThanCoresAreNotPinned) {
  LaunchOptions options = shell("true", static_cast<int>(available_cores().size()) + 1);
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  options.pin = true;
  EXPECT_EQ(launch(options), 0);
  EXPECT_THAT(text("err"), HasSubstr("not pinned to cores"));
  options.pin = false;
  std::filesystem::remove(here("err"));
  EXPECT_EQ(launch(options), 0);
  EXPECT_EQ(text("err"), "");
}

TEST_F(Launch, RankZeroGetsStandardInput) {
  write_file_atomic(here("in"), "hello\n");
  EXPECT_EQ(launch(shell("sed s/^/got:/", 2)), 0);
  EXPECT_EQ(text("out"), "got:hello\n");
}

TEST_F(Launch, RankZeroDetectsThatTheReaderHasExited) {
  start(shell("yes", 1), [] {
    int ends[2];
    if (::pipe(ends) == 0) ::dup2(ends[1], STDOUT_FILENO), ::close(ends[0]), ::close(ends[1]);
  });
  EXPECT_EQ(exit_code(), 128 + SIGPIPE);
}

TEST_F(Launch, ClosedStandardStreamsAreFilled) {
  LaunchOptions options = shell("readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2", 1);
  options.log_folder = here("logs");
  start(options, [] {
    for (const int fd : {0, 1, 2}) ::close(fd);
  });
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(logged("0"), MatchesRegex("/dev/null\npipe:.*\npipe:.*\n"));
}

TEST_F(Launch, TooFewDescriptorsAreReported) {
  start(shell("exec sleep 1000", 40), [] {
    const rlimit few{.rlim_cur = 50, .rlim_max = 50};
    ::setrlimit(RLIMIT_NOFILE, &few);
  });
  EXPECT_EQ(exit_code(), 1);
  EXPECT_THAT(text("err"), has_all("Too many open files", "three per rank", "50"));
}

TEST_F(Launch, TheSoftLimitOnDescriptorsIsTheRanksOnly) {
  start(shell("[ $RANK = 39 ] && ulimit -n; true", 40), [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 50;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  });
  EXPECT_EQ(exit_code(), 0) << text("err");
  EXPECT_EQ(text("out"), "[rank 39] 50\n");
}

TEST_F(Launch, ProgramsThatCannotBeStartedAreReported) {
  EXPECT_EQ(launch({.command = {"no-such-program"}}), 2);
  EXPECT_THAT(text("err"), MatchesRegex("[^\n]*no-such-program: [^\n]*PATH"));
  write_file_atomic(here("notes.txt"), "text");
  std::filesystem::remove(here("err"));
  EXPECT_EQ(launch({.command = {here("notes.txt")}}), 2);
  EXPECT_THAT(text("err"), has_all("notes.txt:", "not executable"));
  std::filesystem::permissions(here("notes.txt"), std::filesystem::perms::owner_all);
  EXPECT_EQ(launch({.command = {here("notes.txt")}, .ranks = 2}), 2);
  EXPECT_THAT(text("err"), HasSubstr("notes.txt: Exec format error"));
}

}  // namespace
}  // namespace stretto::launch
