#include "stretto/launch/launch.h"

#include <gmock/gmock.h>

#include "stretto/base/fd.h"
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

TEST_F(Launch, ALogOfAnEarlierRunIsKeptWhenARunFailsBeforeItsFirstStep) {
  LaunchOptions options = shell("echo first", 1);
  options.own_program = true;
  options.log_folder = here("logs");
  EXPECT_EQ(launch(options), 0);
  const std::string before = text("logs/training_0.log");
  options.ranks = 2;
  options.restart = {.max_restarts = 1, .first_delay = std::chrono::milliseconds(1)};
  for (const int code : {2, 3}) {
    options.command.back() = fmt::format("echo failed; [ $RANK = 0 ] && exec sleep 100; exit {}", code);
    EXPECT_EQ(launch(options), code);
    EXPECT_EQ(text("logs/training_0.log"), before) << code;
    EXPECT_FALSE(has("logs/training_1.log")) << code;
  }
  options.command.back() = "exit $((7 - 7 * TORCHELASTIC_RESTART_COUNT))";
  EXPECT_EQ(launch(options), 0);
  EXPECT_THAT(text("logs/training_0.log"), AllOf(StartsWith(before), HasSubstr(" start of rank 0 ")));
}

TEST_F(Launch, ARunThatIsRefusedLeavesNoLogs) {
  LaunchOptions options = shell("echo $RANK; [ $RANK = 0 ] || exit $CODE", 2);
  options.log_folder = here("run/logs");
  const auto launch_with = [&](int code) {
    options.environment["CODE"] = std::to_string(code);
    EXPECT_EQ(launch(options), code);
  };
  options.own_program = true;
  launch_with(usage_error);
  EXPECT_FALSE(has("run"));
  launch_with(3);  // the log may explain a failure
  EXPECT_TRUE(has("run/logs/training_1.log"));
  EXPECT_THAT(text("err"), HasSubstr("its log is " + here("run/logs/training_1.log")));
  std::filesystem::remove_all(here("run"));
  options.own_program = false;  // the exit code 2 has no special meaning
  launch_with(usage_error);
  EXPECT_TRUE(has("run/logs/training_1.log"));
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

TEST_F(Launch, OutputOfAllRanksIsForwarded) {
  EXPECT_EQ(launch(shell("printf 'out %s\\nend' $RANK; echo err >&2", 2)), 0);
  EXPECT_THAT(text("out"),
              AllOf(HasSubstr("out 0\n"), HasSubstr("[rank 1] out 1\n"), HasSubstr("[rank 1] end\n")));
  EXPECT_THAT(text("out"), HasSubstr("end"));
  EXPECT_THAT(text("err"), AllOf(HasSubstr("err\n"), HasSubstr("[rank 1] err\n")));
}

TEST_F(Launch, LogsContainAllLinesAndTheTerminalRankZerosAndWarnings) {
  LaunchOptions options = shell(
      "printf '\\rstep 1\\rstep 2\\n'; echo plain >&2; [ $RANK = 0 ] || echo '[rank 1] warning: low' >&2", 2);
  options.log_folder = here("a/logger_logs");
  EXPECT_EQ(launch(options), 0);
  EXPECT_EQ(text("out"), "\rstep 1\rstep 2\n");
  EXPECT_THAT(text("a/logger_logs/training_0.log"), AllOf(HasSubstr(" step 2\n"), Not(HasSubstr("step 1"))));
  EXPECT_THAT(text("a/logger_logs/training_1.log"),
              AllOf(HasSubstr("plain\n"), HasSubstr("[rank 1] warning: low\n")));
  EXPECT_THAT(text("err"), AllOf(HasSubstr("plain\n"), HasSubstr("[rank 1] warning: low\n"),
                                 Not(HasSubstr("[rank 1] plain"))));
}

TEST_F(Launch, LogsHaveTimesAndALinePerRun) {
  LaunchOptions options = shell("echo $MINE", 1);
  options.log_folder = here("logs");
  for (const std::string run : {"first", "second"}) {
    options.environment["MINE"] = run;
    EXPECT_EQ(launch(options), 0);
  }
  const std::string time = "[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+\\.[0-9]+ ";
  const std::string start = time + "======== start of rank 0 \\(process [0-9]+\\) ========\n";
  EXPECT_THAT(text("logs/training_0.log"),
              MatchesRegex(start + time + "first\n" + start + time + "second\n"));
}

TEST_F(Launch, AMessageThatRanksShareIsShownOnce) {
  LaunchOptions options = shell(
      "[ $RANK = 0 ] || mark=\"[rank $RANK] \"; echo \"${mark}stretto: warning: low\" >&2; sleep 0.5", 3);
  options.log_folder = here("logs");
  EXPECT_EQ(launch(options), 0);
  EXPECT_EQ(text("err"), "stretto: warning: low\n");
  options = shell("[ $RANK = 0 ] || echo \"[rank $RANK] stretto: warning: low\" >&2", 3);
  std::filesystem::remove(here("err"));
  EXPECT_EQ(launch(options), 0);
  EXPECT_EQ(text("err"), "[ranks 1, 2] stretto: warning: low\n");
  options = shell("echo 'stretto: error: before the logger knows its rank' >&2; sleep 0.5", 3);
  std::filesystem::remove(here("err"));
  EXPECT_EQ(launch(options), 0);
  EXPECT_EQ(text("err"), "stretto: error: before the logger knows its rank\n");
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
  EXPECT_THAT(text("err"), HasSubstr("was killed by SIGBUS (Bus error); a mapped file was truncated, or the "
                                     "disk or memory behind it is full"));
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

// 2 MB: much more than a pipe and the buffer of these tests hold.
const std::string many_lines = "seq -f 'line %.0f " + std::string(90, 'x') + "' 0 19999";

// The launcher's output goes into a pipe that nothing reads before read_all().
class UnreadOutput : public Launch {
 protected:
  void start_unread(const std::string& script, const std::string& logs, std::chrono::milliseconds patience) {
    LaunchOptions options = shell(script, 1);
    options.log_folder = logs;
    options.output = {.capacity = size_t{64} << 10, .patience = patience};
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_ = Fd(ends[0]);
    const Fd write(ends[1]);
    start(options, [&] {
      for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(write.get(), stream);
      read_.reset();
    });
  }
  std::string read_all() const {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = ::read(read_.get(), chunk, sizeof chunk)) > 0;)
      text.append(chunk, static_cast<size_t>(got));
    return text;
  }

 private:
  Fd read_;
};

TEST_F(UnreadOutput, BlocksNeitherRanksNorSignals) {
  start_unread(many_lines + "; echo > " + here("done") + "; exec sleep 1000", here("logs"),
               std::chrono::milliseconds(100));
  EXPECT_TRUE(becomes_true([&] { return has("done"); }));
  EXPECT_TRUE(becomes_true([&] { return logged("0").find("line 19999 ") != std::string::npos; }));
  EXPECT_THAT(logged("0"), HasSubstr("line 0 "));
  ::kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
}

TEST_F(UnreadOutput, ResumedReaderGetsTheLastLinesAndTheNumberOfMissingOnes) {
  start_unread(many_lines + "; echo > " + here("done"), "", std::chrono::milliseconds(100));
  EXPECT_TRUE(becomes_true([&] { return has("done"); }));
  EXPECT_THAT(read_all(),
              AllOf(HasSubstr("line 0 "), HasSubstr("line 19999 "),
                    HasSubstr(" were dropped here: nothing read them\n"), Not(HasSubstr("line 12000 "))));
  EXPECT_EQ(exit_code(), 0);
}

// One of two signals ends the wait for the reader; the other one arrives after it.
TEST_F(UnreadOutput, IsNotWaitedForAfterASignalWhichLeavesTheResult) {
  start_unread("echo $$ > " + here("pid") + "; head -c 100000 /dev/zero", "", std::chrono::hours(1));
  const pid_t rank = number_in("pid");
  ASSERT_TRUE(becomes_true([&] { return ::kill(rank, 0) != 0; }));
  ::kill(launcher_, SIGSTOP);
  ASSERT_TRUE(becomes_true([&] { return process_state(launcher_) == "T"; }));
  for (const int signal : {SIGINT, SIGTERM, SIGCONT}) ::kill(launcher_, signal);
  EXPECT_EQ(exit_code(), 0);
}

// The rank waits for the reader, which is slow but not stalled.
TEST_F(UnreadOutput, LosesNothingWithinItsPatience) {
  start_unread(many_lines + "; echo > " + here("done"), "", std::chrono::hours(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(has("done"));
  const std::string text = read_all();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20000);
  EXPECT_THAT(text, Not(HasSubstr("dropped")));
  EXPECT_EQ(exit_code(), 0);
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

TEST_F(Launch, AnUnwritableLogFolderIsReported) {
  LaunchOptions options = shell("true", 1);
  options.log_folder = "/dev/null/logs";
  EXPECT_EQ(launch(options), 1);
  EXPECT_THAT(text("err"), has_all("/dev/null/logs", "Not a directory"));
}

}  // namespace
}  // namespace stretto::launch
