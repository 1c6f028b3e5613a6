// The wall clock can be set back at any time, so no decision may depend on it: intervals, timeouts, which
// checkpoint is the newest. Sources that display the time are listed here; the others must not read the
// clock.
#include <filesystem>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

const std::set<std::string> shows_time = {
    "base/clock.h",                        // seconds_since_1970() and log_time(), for the sources below
    "base/clock.cpp",                      // the same
    "base/log.cpp",                        // the times of log lines
    "launch/output/rank_output.cpp",       // the times of log lines
    "launch/supervise.cpp",                // when a flight record was taken
    "programs/stretto/checkpoints.cpp",    // when each checkpoint was saved
    "programs/stretto/flair_results.cpp",  // the times of log lines
    "programs/stretto/top.cpp",            // the age of the displayed state
    "report/page.cpp",                     // when a page was written
    "track/metrics_log.cpp",               // when values were recorded
    "track/mlflow_sender.cpp",             // the same
    "track/results_file.cpp",              // the same
    "track/status_file.cpp",               // when the state was written
    "track/tensorboard.cpp",               // when values were recorded
    "track/track_test.cpp",                // compares with recorded values
};

std::vector<std::string> reads_wall_clock(std::string_view text) {
  static const std::regex wall_clock(
      R"(system_clock|high_resolution_clock|file_clock|last_write_time|gettimeofday|CLOCK_REALTIME|seconds_since_1970|\blog_time\(|\btime\((nullptr|NULL|0)\))");
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (std::regex_search(line.begin(), line.end(), wall_clock)) lines.emplace_back(line);
  }
  return lines;
}

TEST(WallClock, IsOnlyDisplayed) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SOURCE_FOLDER)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".h" && path.extension() != ".cpp") continue;
    if (shows_time.contains(path.lexically_relative(SOURCE_FOLDER))) continue;
    EXPECT_THAT(reads_wall_clock(read_file(path)), ::testing::IsEmpty())
        << path.string() << ": use std::chrono::steady_clock; a file that only shows the time belongs in "
        << "shows_time";
  }
}

TEST(WallClock, IsFoundUnderAllItsNames) {
  EXPECT_THAT(
      reads_wall_clock("a\nstd::time(nullptr)\nsteady_clock::now()\nb(std::chrono::system_clock::now())"),
      ::testing::SizeIs(2));
}

}  // namespace
}  // namespace stretto
