#include "stretto/programs/stretto/byte_progress.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/log.h"

namespace stretto::cli {
namespace {

TEST(ByteProgress, LogsWhatIsDoneUntilItEnds) {
  std::mutex mutex;
  std::condition_variable logged;
  std::vector<std::string> lines;
  log::set_output([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
    logged.notify_all();
  });
  const auto wait_for = [&](const std::string& wanted) {
    std::unique_lock lock(mutex);
    return logged.wait_for(lock, std::chrono::minutes(1),
                           [&] { return !lines.empty() && lines.back().find(wanted) != std::string::npos; });
  };
  {
    ByteProgress progress("writing the model", 4096, std::chrono::milliseconds(1));
    progress.add(1024);
    EXPECT_TRUE(wait_for("writing the model (1.0 KiB of 4.0 KiB done)"));
    progress.describe("reading");
    progress.add(3072);
    EXPECT_TRUE(wait_for("reading (4.0 KiB of 4.0 KiB done)"));
  }
  lines.clear();
  { ByteProgress progress("short", 4096, std::chrono::hours(1)); }
  log::set_output({});
  EXPECT_TRUE(lines.empty());
}

}  // namespace
}  // namespace stretto::cli
