#include <algorithm>
#include <csignal>
#include <list>
#include <thread>

#include "tests/support/shell.h"
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

// Tests `stretto launch` and `stretto inspect` with ranks that hang, make different calls or die inside
// collectives.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string stretto = STRETTO_PROGRAM;
const std::string probe = COLLECTIVE_PROBE;

class HangingRun : public ::testing::TestWithParam<const char*> {
 protected:
  std::string launch(const std::string& options, const std::string& mode) const {
    return "exec " + stretto + " launch -N 2 --no-pin --log-dir " + logs_ + " " + options + " -- " + probe +
           " " + mode + " " + GetParam();
  }
  std::string logged(const char* log) const {
    return std::filesystem::exists(logs_ + log) ? read_file(logs_ + log) : "";
  }
  ShellResult inspect(const std::string& options = "") const {
    return shell(stretto + " inspect " + logs_ + options);
  }

  TempFolder folder_;
  std::string logs_ = folder_.path() / "logs";
};

TEST_P(HangingRun, AStoppedRankIsNamedAndAllEnd) {
  BackgroundShell run(launch("--hang-timeout 1", "run"));
  for (const char* log : {"/training_0.log", "/training_1.log"})
    ASSERT_TRUE(eventually([&] { return logged(log).find("runs\n") != std::string::npos; })) << run.err();
  const pid_t rank = children_of(run.pid(), "RANK=1")[0], other = children_of(run.pid(), "RANK=0")[0];
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than the timeout
  ASSERT_TRUE(run.running()) << "a rank that works was taken for one that hangs:\n" << run.err();
  ::kill(rank, SIGSTOP);
  const ShellResult result = run.wait();  // ends long before the deadline of the collectives, 600 s
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_THAT(result.err, has_all("error: rank 1 on ", "(state T)",
                                  "rank 0 waits in all_reduce [1024] float32 #", " of group world\n"));
  EXPECT_TRUE(::kill(rank, 0) != 0 && ::kill(other, 0) != 0);
  EXPECT_THAT(inspect().out,
              has_all("rank 1 on ", "was stopped by a signal (state T)", "float32 #", ": waited for "));
}

TEST_P(HangingRun, ARankThatNeverJoinsIsNamed) {
  const ShellResult result = shell(launch("--hang-timeout 1", "skip"));
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_THAT(result.err,
              has_all("error: rank 1 on ", "(state S)", "not called all_reduce [1024] float32 #17",
                      "last call was all_reduce [1024] float32 #16", "rank 0 waits in all_reduce"));
  EXPECT_THAT(inspect(" --last 1").out, AllOf(has_all("first difference: rank 1 has not called all_reduce",
                                                      "float32 #17 of group world, which rank 0 has",
                                                      "; 17 collectives", "; 18 collectives"),
                                              Not(HasSubstr("#15"))));
}

TEST_P(HangingRun, WithoutTheLauncherACollectiveFailsAtItsOwnDeadline) {
  const ShellResult result = shell(launch("--hang-timeout 0 --collective-timeout 1", "skip"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ContainsRegex("probe: rank 0: all_reduce \\[1024\\] float32 #17 .*"
                                        "(rank 1 has not|until the deadline|Timed out)"));
}

TEST_P(HangingRun, AfterAHangTheGroupIsRestarted) {
  const ShellResult result = shell(launch("--hang-timeout 1 --max-restarts 2", "skip"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 2 in 1 s, because rank 1 on "));
}

TEST_P(HangingRun, WithoutATimeoutHangsAreNotReported) {
  const ShellResult slow = shell(launch("--hang-timeout 0", "compute"));
  EXPECT_EQ(slow.exit_code, 0) << slow.err;
}

TEST(ForeignRun, IsNotBlamedWithoutARecord) {
  const ShellResult result = shell(stretto + " launch -N 2 --hang-timeout 0.2 -- sleep 1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// The rank's group is destroyed a second before its process ends. The others must not end in between, because
// they would be blamed.
TEST(SharedMemoryRun, ARankThatFailsAndEndsLaterIsNamed) {
  const ShellResult result = shell(stretto + " launch -N 2 --no-pin -- " + probe + " throw shm");
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("probe: the first mistake"), ContainsRegex("rank 1 \\(process [0-9]+\\) ")));
  EXPECT_THAT(result.err, Not(ContainsRegex("error: rank 0 \\(process")));
}

bool is_stopped(pid_t pid) {
  return read_file(fmt::format("/proc/{}/status", pid)).find("State:\tT") != std::string::npos;
}

// Rank 0 is paused while it waits for rank 1, for longer than the deadline of collectives.
TEST(PausedJob, ContinuesAfterAPauseBeyondTheDeadlineOfCollectives) {
  const TempFolder folder;
  const std::string go_on = folder.path() / "go_on";
  std::list<BackgroundShell> runs;
  for (const std::string what : {"late shm", "late tcp", "late-message tcp"}) {
    runs.emplace_back("exec " + stretto +
                      " launch -N 2 --no-pin --hang-timeout 3 --collective-timeout 3 -- " + probe + " " +
                      what + " " + go_on);
    const auto shows = [&](const char* line) { return runs.back().out().find(line) != std::string::npos; };
    ASSERT_TRUE(eventually([&] { return shows("[rank 1] is late\n") && shows("waits\n"); })) << what;
    std::vector<pid_t> all = children_of(runs.back().pid());
    ASSERT_EQ(all.size(), 2u);
    all.push_back(runs.back().pid());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // rank 0 is in its call
    ::kill(runs.back().pid(), SIGTSTP);
    EXPECT_TRUE(eventually([&] { return std::ranges::all_of(all, is_stopped); })) << what;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  for (const BackgroundShell& run : runs) ::kill(run.pid(), SIGCONT);
  for (BackgroundShell& run : runs)
    EXPECT_TRUE(eventually([&] { return run.err().find("the job was paused for ") != std::string::npos; }));
  write_file_atomic(go_on, "");
  for (BackgroundShell& run : runs) {
    const ShellResult result = run.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_P(HangingRun, ADeadRankLeavesItsRecord) {
  BackgroundShell run(launch("", "die"));
  const ShellResult result = run.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGABRT);
  EXPECT_THAT(result.err, HasSubstr("stretto inspect " + logs_ + "/flight_record.json"));
  EXPECT_THAT(inspect().out,
              AllOf(HasSubstr("was killed by SIGABRT (Aborted)"),
                    HasSubstr("#16 of group world, 4.0 KiB: done after"), HasSubstr("; 17 collectives")));
}

TEST_P(HangingRun, DifferentCallsAreFoundAfterwards) {
  EXPECT_NE(shell(launch("--hang-timeout 1", "differ")).exit_code, 0);
  EXPECT_THAT(inspect().out, has_all("first difference: rank 1 called all_gather [4] float32 #17",
                                     "rank 0 called all_reduce [8] float32 #17"));
}

TEST_P(HangingRun, DifferentCallsAreErrorsInDebugMode) {
  const ShellResult result = shell("export STRETTO_DEBUG=collectives; " + launch("", "differ"));
  EXPECT_EQ(result.exit_code, 1);
  const std::string output = result.err + read_file(logs_ + "/training_1.log");
  EXPECT_THAT(output, has_all("probe: rank ", "rank 1 called all_gather [4] float32 #17",
                              "rank 0 called all_reduce [8] float32 #17", "group world"));
}

TEST_P(HangingRun, OtherFilesAreRefused) {
  EXPECT_EQ(inspect().exit_code, 2);
  EXPECT_THAT(inspect().err, has_all(logs_ + ":", "no such file or folder"));
  make_folders(logs_);
  EXPECT_THAT(inspect().err, has_all(logs_ + " holds no flight_record.json", "when a rank fails"));
  write_file_atomic(logs_ + "/flight_record.json", "{\"format\": 1}");
  const ShellResult broken = inspect();
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, has_all("flight_record.json:", "broken, or of another version"));
}

INSTANTIATE_TEST_SUITE_P(Backends, HangingRun, ::testing::Values("shm", "tcp", "gloo"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace stretto
