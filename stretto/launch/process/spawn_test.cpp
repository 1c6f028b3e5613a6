#include "stretto/launch/process/spawn.h"

#include <gmock/gmock.h>

#include "stretto/base/fd.h"
#include "stretto/launch/launch_fixture.h"

// Ranks between fork and exec.
namespace stretto::launch {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using namespace std::chrono_literals;

// exec of a program that another process holds a write lease on (fcntl(2)) waits, as on a disk that does not
// answer: until the lease is released, or for /proc/sys/fs/lease-break-time, which is 45 s.
class SlowStart : public Launch {
 protected:
  void SetUp() override {
    std::filesystem::copy_file("/bin/sh", program_);
    ::signal(SIGIO, SIG_IGN);  // sent to the holder of the lease
    lease_ = Fd(::open(program_.c_str(), O_RDONLY | O_CLOEXEC));
    if (::fcntl(lease_.get(), F_SETLEASE, F_WRLCK) != 0)
      GTEST_SKIP() << "no file leases here: " << std::strerror(errno);
  }
  void TearDown() override {
    release();
    Launch::TearDown();
  }
  void release() { ::fcntl(lease_.get(), F_SETLEASE, F_UNLCK); }

  LaunchOptions script(const std::string& text, int ranks) const {
    return {.command = {program_, "-c", text}, .ranks = ranks, .pin = false};
  }
  // The process of the rank, which is blocked in exec.
  pid_t waiting_child() {
    pid_t child = 0;
    EXPECT_TRUE(becomes_true([&] {
      const std::string children = read_file(fmt::format("/proc/{0}/task/{0}/children", launcher_));
      child = static_cast<pid_t>(parse_int(trim(children)).value_or(0));
      return child != 0 && process_state(child) == "S";
    }));
    return child;
  }

  std::string program_ = here("program");
  Fd lease_;
};

TEST_F(SlowStart, IsWaitedFor) {
  start(script("echo started; exit 3", 1));
  waiting_child();
  release();
  EXPECT_EQ(exit_code(), 3);
  EXPECT_EQ(text("out"), "started\n");
}

TEST_F(SlowStart, IsEndedByASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    start(script("echo started", 1));
    const pid_t child = waiting_child();
    ::kill(launcher_, signal);
    EXPECT_EQ(exit_code(), 128 + signal);
    EXPECT_FALSE(runs(child));
    EXPECT_EQ(text("out"), "");
  }
}

TEST_F(SlowStart, StoppedRankIsAHang) {
  LaunchOptions options = script("echo started", 1);
  options.hang_timeout = 1s;
  start(options);
  const pid_t child = waiting_child();
  ::kill(child, SIGSTOP);
  EXPECT_EQ(exit_code(), 124);
  EXPECT_FALSE(runs(child));
  EXPECT_THAT(
      text("err"),
      AllOf(ContainsRegex(
                "error: rank 0 on [^ ]+ has not started " + program_ +
                " in [0-9.]+ s: stopped by a signal \\(state T\\); it was stopped before the program"),
            HasSubstr("restart the job")));
}

TEST_F(SlowStart, FailureIsReportedOnce) {
  release();
  for (const bool own : {false, true}) {
    write_file_atomic(here("text"), "no program");
    std::filesystem::permissions(here("text"), std::filesystem::perms::owner_all);
    std::filesystem::remove(here("err"));
    EXPECT_EQ(launch({.command = {here("text")},
                      .ranks = 3,
                      .pin = false,
                      .log_folder = here("logs"),
                      .restart = {.max_restarts = 1},
                      .own_program = own}),
              usage_error);
    EXPECT_THAT(text("err"),
                MatchesRegex("stretto: error: rank [0-2] \\(process [0-9]+\\) could not start " +
                             here("text") + ": Exec format error\n(stopping the other ranks\n)?"));
  }
}

}  // namespace
}  // namespace stretto::launch
