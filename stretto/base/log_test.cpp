#include "stretto/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/file_faults.h"
#include "stretto/base/files.h"
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
  EXPECT_THAT(read_file(folder.path() / "training_0.log"),
              MatchesRegex(".*:.*:.* info step 1\n.*:.*:.* error step 2 failed\n"));
}

TEST(Log, FullDiskIsReportedAndSurvived) {
  const TempFolder folder;
  open_file(folder.path() / "training_0.log");
  testing::internal::CaptureStderr();
  {
    const file_faults::Injection full({.call = 1, .error = ENOSPC});
    warning("lost in the file");
  }
  warning("kept");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("No space left on device"), HasSubstr("stretto: warning: lost in the file")));
  EXPECT_THAT(read_file(folder.path() / "training_0.log"), AllOf(HasSubstr("kept"), Not(HasSubstr("lost"))));
}

}  // namespace
}  // namespace stretto::log
