#include "stretto/base/log.h"

#include <csignal>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
#include "stretto/base/log_setup.h"
#include "stretto/base/temp_folder.h"

namespace stretto::log {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(Log, LinesGoToStderrAndToTheFile) {
  const TempFolder folder;
  open_file(folder.path() / "training_0.log");
  testing::internal::CaptureStderr();
  info("step {}", 1);
  error("step {} failed", 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "step 1\nstretto: error: step 2 failed\n");
  const std::string time = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} ";
  EXPECT_THAT(read_file(folder.path() / "training_0.log"),
              MatchesRegex(time + "======== start of process [0-9]+ ========\n" + time + "info step 1\n" +
                           time + "error step 2 failed\n"));
}

TEST(Log, AHeldFileIsDiscardedWithoutAChange) {
  const TempFolder folder;
  const auto path = folder.path() / "training_0.log";
  open_held_file(path);
  testing::internal::CaptureStderr();
  info("nothing to do");
  discard_held_file();
  release_file();
  EXPECT_FALSE(std::filesystem::exists(path));
  open_held_file(path);
  release_file();
  discard_held_file();
  info("kept");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "nothing to do\nkept\n");
  EXPECT_THAT(read_file(path), AllOf(HasSubstr("info kept\n"), Not(HasSubstr("nothing"))));
}

TEST(Log, FullDiskIsReportedAndTolerated) {
  const TempFolder folder;
  open_file(folder.path() / "training_0.log");
  testing::internal::CaptureStderr();
  {
    const file_faults::Injection full({.call = 1, .error = ENOSPC, .sticky = true});
    warning("lost in the file");
    warning("lost as well");
  }
  warning("kept");
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      MatchesRegex("stretto: warning: lines are missing from the log file: .*No space left on device\n"
                   "stretto: warning: lost in the file\n"
                   "stretto: warning: lost as well\n"
                   "stretto: warning: kept\n"));
  EXPECT_THAT(read_file(folder.path() / "training_0.log"),
              AllOf(HasSubstr(" warning kept\n"), Not(HasSubstr("lost"))));
}

// The first standard error is a pipe without a reader, the second a full disk.
TEST(Log, UnwritableStderrIsTolerated) {
  ::signal(SIGPIPE, SIG_IGN);
  const int before = ::dup(STDERR_FILENO);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const int full = ::open("/dev/full", O_WRONLY);
  for (const int broken : {ends[1], full}) {
    ::dup2(broken, STDERR_FILENO);
    EXPECT_NO_THROW(error("lost"));
    EXPECT_NO_THROW(live("lost"));
    EXPECT_NO_THROW(end_live());
    ::close(broken);
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::signal(SIGPIPE, SIG_DFL);
}

TEST(Log, AnOutputReplacesStderr) {
  std::string text;
  set_output([&](std::string_view line) { text += fmt::format("<{}>", line); });
  testing::internal::CaptureStderr();
  info("step {}", 1);
  warning("low");
  set_output([](std::string_view) { throw std::bad_alloc(); });
  EXPECT_NO_THROW(info("lost"));
  set_output({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(text, "<step 1><stretto: warning: low>");
}

TEST(Log, ControlCharactersOfDataDoNotReachTheTerminal) {
  testing::internal::CaptureStderr();
  error("label \"{}\" is not known",
        "\033]0;owned\007\xc2\x9b"
        "2J\xc3\xa9\r");
  live("\033[2J");
  end_live();
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "stretto: error: label \"\\x1b]0;owned\\x07\\u009b2J\xc3\xa9\\x0d\" is not known\n\r\033[K\\x1b[2J\n");
}

TEST(Log, ALineReplacesTheLiveOne) {
  testing::internal::CaptureStderr();
  live("step 1");
  live("step 2");
  info("saved");
  end_live();
  live("step 3");
  end_live();
  info("done");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\r\033[Kstep 1\r\033[Kstep 2\r\033[Ksaved\n\r\033[Kstep 3\ndone\n");
}

}  // namespace
}  // namespace stretto::log
