#include <chrono>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/checkpoint_format/folder.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Simulates a clock that was set back by a century before the last save.
TEST(ClockGoingBack, TheNewestCheckpointIsTheOneOfTheMostSteps) {
  const Workspace workspace;
  const std::string settings =
      "training.precision=fp32 evaluate.every=never checkpoint.every=1 checkpoint.keep_last=3 checkpoint.accept_changes=[training.max_steps] training.max_steps=";
  workspace.train("run", 1, settings + "4");
  const std::filesystem::path checkpoints = workspace.path("run/checkpoints");
  const auto shift = [](const std::filesystem::path& path, std::chrono::years years) {
    const auto time = std::filesystem::file_time_type::clock::now() + years;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      std::filesystem::last_write_time(entry.path(), time);
    std::filesystem::last_write_time(path, time);
  };
  shift(workspace.path("run"), std::chrono::years(70));
  shift(checkpoint_format::checkpoint_path(checkpoints, 4), -std::chrono::years(30));

  const ShellResult resumed =
      workspace.run("train", 1, fmt::format("{}6 output={}", settings, workspace.path("run")));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed    after step 4"));
  EXPECT_THAT(workspace.losses("run"), SizeIs(6));
  std::vector<int64_t> kept;
  for (const auto& checkpoint : checkpoint_format::list_checkpoints(checkpoints))
    kept.push_back(checkpoint.step);
  EXPECT_THAT(kept, ElementsAre(4, 5, 6));
}

}  // namespace
}  // namespace stretto
