#include <csignal>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/checkpoint_format/folder.h"

// `resume` determines where a run begins. After a failure, the run resumes from its latest checkpoint
// instead.
namespace stretto {
namespace {

using ::testing::HasSubstr;

class Restart : public ::testing::Test {
 protected:
  void SetUp() override {
    workspace_.train("first", 2, "training.max_steps=4 checkpoint.every=2 " + settings_);
    first_ = checkpoint_format::checkpoint_path(workspace_.path("first/checkpoints"), 2);
  }
  std::string start(const std::string& resume) const {
    return workspace_.command(
        "train", 2,
        fmt::format(
            "training.max_steps=100000 checkpoint.every=1 output={} resume={} checkpoint.accept_changes=[training.max_steps] {}",
            workspace_.path("run"), resume, settings_));
  }
  bool has_saved(int64_t step) const {
    const auto checkpoints = checkpoint_format::list_checkpoints(workspace_.path("run/checkpoints"));
    return !checkpoints.empty() && checkpoints.back().step >= step;
  }

  const Workspace workspace_;
  const std::string settings_ = "training.precision=fp32 training.epochs=100000 evaluate.every=never";
  std::filesystem::path first_;
};

TEST_F(Restart, ContinuesWhateverTheFirstStartBeganFrom) {
  for (const std::string& resume : {std::string("false"), first_.string()}) {
    std::filesystem::remove_all(workspace_.path("run"));
    BackgroundShell run(start(resume) + " --max-restarts 1");
    ASSERT_TRUE(eventually([&] { return has_saved(5); })) << run.err();
    const auto rank = children_of(run.pid(), "RANK=1");
    ASSERT_EQ(rank.size(), 1u);
    ::kill(rank.front(), SIGKILL);
    EXPECT_TRUE(eventually([&] {
      return run.err().find(", from " + workspace_.path("run/checkpoints")) != std::string::npos;
    })) << run.err();
    ::kill(run.pid(), SIGTERM);
    EXPECT_EQ(run.wait().exit_code, 0) << run.err();
  }
}

TEST_F(Restart, TheCommandToContinueNamesThisRun) {
  BackgroundShell run(start(first_));
  ASSERT_TRUE(eventually([&] { return has_saved(3); })) << run.err();
  ::kill(run.pid(), SIGTERM);
  const ShellResult result = run.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(fmt::format("--set resume={} ", first_.string())));
  EXPECT_THAT(result.err, HasSubstr(" --set resume=auto\n"));
}

}  // namespace
}  // namespace stretto
