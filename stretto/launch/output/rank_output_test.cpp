#include "stretto/launch/output/rank_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/fd.h"
#include "stretto/base/message_support.h"
#include "stretto/launch/launch_fixture.h"

namespace stretto::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

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

TEST_F(Launch, AnUnwritableLogFolderIsReported) {
  LaunchOptions options = shell("true", 1);
  options.log_folder = "/dev/null/logs";
  EXPECT_EQ(launch(options), 2);
  EXPECT_THAT(text("err"), has_all("/dev/null/logs", "Not a directory"));
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

}  // namespace
}  // namespace stretto::launch
