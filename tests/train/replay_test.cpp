#include <csignal>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/archive/folder.h"
#include "stretto/base/files.h"

// A run dies in one of its writes, in each of them in turn, and is resumed from what was on disk.
namespace stretto {
namespace {

// The parameter is the first write to die in, followed by every second one: two tests share the work.
class Replay : public ::testing::TestWithParam<int> {
 protected:
  // One block and an optimizer without state, so that a save has few writes; saves are synchronous, so that the n-th write is
  // the same in each run. Step 4 is the last of an epoch: the model is evaluated and saved.
  Replay() {
    auto config = nlohmann::json::parse(workspace_.read("model/config.json"));
    config["num_hidden_layers"] = 1;
    workspace_.write("model/config.json", config.dump());
    workspace_.train("whole", 1, settings_ + "checkpoint.keep_last=0");
  }

  // A run that has taken three steps: the next one removes the older of its checkpoints.
  void begin() const {
    std::filesystem::remove_all(checkpoints_);
    make_folders(checkpoints_);
    for (const int64_t step : {2, 3}) {
      std::filesystem::copy(archive::checkpoint_path(workspace_.path("whole/checkpoints"), step),
                            archive::checkpoint_path(checkpoints_, step),
                            std::filesystem::copy_options::recursive);
    }
  }
  ShellResult run(const std::string& fault) const {
    return shell(with_file_fault(fault) +
                 workspace_.command("train", 1, settings_ + "output=" + workspace_.path("run")));
  }
  void finish() const {
    const ShellResult finished = run("kill@1:rank=7");
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    for (const char* file : {"checkpoints/step-00000006/manifest.json",
                             "checkpoints/step-00000006/rank-00000.safetensors", "model/model.safetensors"}) {
      EXPECT_TRUE(workspace_.read(fmt::format("run/{}", file)) ==
                  workspace_.read(fmt::format("whole/{}", file)))
          << file;
    }
  }
  int64_t newest_good() const { return archive::newest_good(checkpoints_).value().step; }
  bool holds_leftovers() const {
    const auto entries = std::distance(std::filesystem::directory_iterator(checkpoints_), {});
    return entries != std::ssize(archive::list_checkpoints(checkpoints_));
  }

  const Workspace workspace_;
  const std::filesystem::path checkpoints_ = workspace_.path("run/checkpoints");
  const std::string settings_ =
      "training.precision=fp32 training.max_steps=6 optimizer.type=SGD checkpoint.every=1 checkpoint.async=false ";
};

TEST_P(Replay, DyingInAWriteLosesNothingThatWasSaved) {
  begin();
  int deaths_before_commit = 0;
  for (int write = GetParam();; write += 2) {
    SCOPED_TRACE(fmt::format("write {}", write));
    const ShellResult died = run(fmt::format("torn@{}:rank=0", write));
    ASSERT_EQ(died.exit_code, 128 + SIGKILL) << died.err;
    if (newest_good() == 3) {  // the next run resumes from here
      ++deaths_before_commit;
      continue;
    }
    ASSERT_EQ(newest_good(), 4);
    const bool done = !holds_leftovers();
    finish();
    if (done) break;  // the step, its model, its checkpoint, and the removal of an old one
    begin();
  }
  EXPECT_GT(deaths_before_commit, 40);
}

INSTANTIATE_TEST_SUITE_P(Writes, Replay, ::testing::Values(1, 2));

}  // namespace
}  // namespace stretto
