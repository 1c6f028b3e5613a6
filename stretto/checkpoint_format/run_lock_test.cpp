#include "stretto/checkpoint_format/run_lock.h"

#include <csignal>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "stretto/base/error.h"
#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

namespace stretto::checkpoint_format {
namespace {

constexpr std::chrono::milliseconds short_time{50};

class RunLockTest : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv(RunLock::variable); }

  // Writes the file that a run writes with its first step.
  void begin_run() const { write_file_atomic(run_ / "config.yaml", "a: 1\n"); }

  TempFolder temp_;
  const std::filesystem::path run_ = temp_.path() / "runs/new";
};

TEST_F(RunLockTest, IsHeldOnceAndUntilItsEnd) {
  {
    const RunLock first(run_);
    EXPECT_THAT(message_of<ConfigError>([&] { RunLock second(run_, short_time); }),
                ::testing::HasSubstr("another run is writing into " + run_.string()));
    const RunLock elsewhere(temp_.path() / "runs/other");
    begin_run();
  }
  EXPECT_TRUE(RunLock::try_take(run_).has_value());
}

TEST_F(RunLockTest, AFolderThatCannotBeCreatedIsAUsageError) {
  write_file_atomic(temp_.path() / "file", "");
  for (const std::filesystem::path& run : {std::filesystem::path("/proc/run"), temp_.path() / "file/run"}) {
    try {
      RunLock lock(run);
      ADD_FAILURE() << run;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_THAT(error.what(),
                  ::testing::AllOf(::testing::HasSubstr("cannot create the folder " + run.string()),
                                   ::testing::HasSubstr("choose another output")));
    }
  }
  const file_faults::Injection full({.call = 1, .error = ENOSPC, .sticky = true});
  try {
    RunLock lock(run_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 1) << "a restart may find room";
  }
}

TEST_F(RunLockTest, RemovesTheFolderOfARunThatHasNotBegun) {
  { const RunLock refused(run_); }
  EXPECT_TRUE(std::filesystem::is_empty(temp_.path()));
  {
    const RunLock refused(run_);
    make_folders(run_ / "cache");
  }
  EXPECT_TRUE(std::filesystem::exists(run_ / "cache"));
  EXPECT_FALSE(std::filesystem::exists(run_ / ".lock"));
  {
    const RunLock lock(run_);
    begin_run();
  }
  { const RunLock refused(run_); }
  EXPECT_TRUE(std::filesystem::exists(run_ / "config.yaml"));
  EXPECT_TRUE(RunLock::is_run(run_));
}

// Concurrent starts in one folder: whichever succeeds holds the lock of the existing folder.
TEST_F(RunLockTest, ConcurrentStartsNeverShareTheLock) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int round = 0; round < 200; ++round) {
        std::optional<RunLock> lock;
        while (!lock) {
          try {
            lock.emplace(run_);
          } catch (const ConfigError&) {
            // the others held the lock for all of its patience
          } catch (...) {
            ::_exit(2);
          }
        }
        const int fd = ::open((run_ / "alone").c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) ::_exit(1);
        ::close(fd);
        std::filesystem::remove(run_ / "alone");
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_FALSE(RunLock::is_run(run_));
}

TEST_F(RunLockTest, DeletingTheLockFileDoesNotReleaseIt) {
  const RunLock first(run_);
  std::filesystem::remove(run_ / ".lock");
  EXPECT_FALSE(RunLock::try_take(run_).has_value());
  ::setenv(RunLock::variable, first.value().c_str(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock own(run_);  // shares the lock of the same run
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RunLockTest, ALinkInItsPlaceIsNotFollowed) {
  std::filesystem::create_directories(run_);
  std::filesystem::create_symlink(temp_.path() / "elsewhere", run_ / ".lock");
  EXPECT_THAT(message_of<IoError>([&] { RunLock::try_take(run_); }),
              ::testing::HasSubstr("cannot write " + (run_ / ".lock").string()));
  EXPECT_FALSE(std::filesystem::exists(temp_.path() / "elsewhere"));
}

TEST_F(RunLockTest, OnlyAFolderOfARunHasOne) {
  EXPECT_FALSE(RunLock::is_run(temp_.path()));
  const RunLock lock(run_);
  EXPECT_TRUE(RunLock::is_run(run_));
}

// A child process that was started under the lock. It runs `body` and then waits to be killed.
template <class Body>
pid_t start(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    while (true) ::pause();
  }
  return child;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(RunLockTest, IsHeldByTheProcessesStartedUnderIt) {
  std::optional<RunLock> lock(run_);
  begin_run();
  const pid_t child = start([] {});
  lock.reset();
  EXPECT_FALSE(RunLock::try_take(run_).has_value());
  end(child);
  EXPECT_TRUE(RunLock::try_take(run_).has_value());
}

TEST_F(RunLockTest, IsSharedWithTheParentProcess) {
  std::optional<RunLock> lock(run_);
  ::setenv(RunLock::variable, lock->value().c_str(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    bool other_refused = false;
    const RunLock own(run_);
    try {
      ::unsetenv(RunLock::variable);
      const RunLock other(run_, short_time);
    } catch (const ConfigError&) {
      other_refused = true;
    }
    ::_exit(other_refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// The descriptor in the variable may refer to any file, here to the lock of another run.
TEST_F(RunLockTest, AnotherDescriptorIsNotTakenOver) {
  const RunLock lock(run_), other(temp_.path() / "runs/other");
  ::setenv(RunLock::variable, other.value().c_str(), 1);
  EXPECT_THROW(RunLock(run_, short_time), ConfigError);
}

}  // namespace
}  // namespace stretto::checkpoint_format
