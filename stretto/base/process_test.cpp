#include "stretto/base/process.h"

#include <cerrno>
#include <csignal>
#include <functional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto {
namespace {

// Runs a function in a child process and returns its exit code.
int in_child(const std::function<int()>& what) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(what());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Process, AFileThatIsOpenedDoesNotBecomeAStandardStream) {
  const TempFolder folder;
  const std::string path = folder.path() / "file";
  EXPECT_EQ(in_child([&] {
              for (const int fd : {0, 1, 2}) ::close(fd);
              fill_standard_descriptors();
              return ::open(path.c_str(), O_WRONLY | O_CREAT, 0600) > 2 && ::write(2, "x", 1) == 1 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(read_file(path), "");
}

TEST(Process, ClosedStandardInputAndOutputStillFail) {
  EXPECT_EQ(in_child([] {
              for (const int fd : {0, 1, 2}) ::close(fd);
              fill_standard_descriptors();
              char byte = 0;
              return ::read(0, &byte, 1) < 0 ? errno : 0;
            }),
            EBADF);
  EXPECT_EQ(in_child([] {
              for (const int fd : {0, 1, 2}) ::close(fd);
              fill_standard_descriptors();
              return ::write(1, "x", 1) < 0 ? errno : 0;
            }),
            EBADF);
}

TEST(Process, OpenDescriptorsAreUnchanged) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(in_child([&] {
              ::dup2(ends[1], 1);
              ::close(0);
              fill_standard_descriptors();
              return ::write(1, "x", 1) == 1 ? 0 : 1;
            }),
            0);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  ::close(ends[0]), ::close(ends[1]);
}

TEST(Process, FailedWritesDoNotEndTheProcess) {
  const TempFolder folder;
  const std::string path = folder.path() / "file";
  EXPECT_EQ(in_child([&] {
              ignore_write_signals();
              int ends[2];
              if (::pipe(ends) != 0) return 1;
              ::close(ends[0]);
              if (::write(ends[1], "x", 1) != -1 || errno != EPIPE) return 2;
              const rlimit small{.rlim_cur = 10, .rlim_max = 10};
              ::setrlimit(RLIMIT_FSIZE, &small);
              try {
                write_file_atomic(path, std::string(100, 'x'));
              } catch (const std::exception& error) {
                return std::string(error.what()).find("File too large") != std::string::npos ? 0 : 4;
              }
              return 3;
            }),
            0);
}

}  // namespace
}  // namespace stretto
