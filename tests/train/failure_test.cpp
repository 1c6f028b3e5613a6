#include <csignal>

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Tests runs that fail while training.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A run that would take days; the constructor waits for its first steps.
class BrokenRun : public ::testing::Test {
 protected:
  explicit BrokenRun(std::string options = "", int world_size = 2)
      : options_(std::move(options)), world_size_(world_size) {}
  void SetUp() override {
    run_.emplace(workspace_.command("train", world_size_, "training.max_steps=1000000 evaluate.every=never") +
                 options_);
    ASSERT_TRUE(eventually([&] {
      return workspace_.has("run/metrics.jsonl") && !workspace_.losses("run").empty();
    })) << run_->err();
    ranks_ = children_of(run_->pid());
    ASSERT_EQ(std::ssize(ranks_), world_size_);
  }

  void expect_ranks_gone() const {
    for (const pid_t rank : ranks_)
      EXPECT_NE(::kill(rank, 0), 0) << "process " << rank << " is still running";
    EXPECT_FALSE(workspace_.has("run/model"));
    EXPECT_FALSE(workspace_.has("run/summary.json"));
  }

  const std::string options_;  // of the launcher, and settings
  const int world_size_;
  Workspace workspace_;
  std::optional<BackgroundShell> run_;
  std::vector<pid_t> ranks_;
};

class HangingTraining : public BrokenRun {
 protected:
  HangingTraining() : BrokenRun(" --hang-timeout 3") {}
};

TEST_F(BrokenRun, AKilledRankIsNamedAndTheOthersEnd) {
  const auto victims = children_of(run_->pid(), "RANK=1");
  ASSERT_EQ(victims.size(), 1u);
  ::kill(victims[0], SIGKILL);
  const ShellResult result = run_->wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(fmt::format("error: rank 1 (process {})", victims[0])), HasSubstr("SIGKILL"),
                    HasSubstr(workspace_.path("run/logger_logs/training_1.log"))));
  expect_ranks_gone();
}

// All ranks sum activations with another one, and gradients with a third.
class BrokenMesh : public BrokenRun {
 protected:
  BrokenMesh() : BrokenRun(" training.mesh.tp=2 training.strategy=fsdp", 4) {}
};

TEST_F(BrokenMesh, AKilledRankIsNamedAndTheOthersEnd) {
  const auto victims = children_of(run_->pid(), "RANK=3");
  ASSERT_EQ(victims.size(), 1u);
  ::kill(victims[0], SIGKILL);
  const ShellResult result = run_->wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(fmt::format("error: rank 3 (process {})", victims[0])), HasSubstr("SIGKILL")));
  expect_ranks_gone();
}

TEST_F(BrokenRun, RankZeroIsTreatedLikeOthers) {
  const auto victims = children_of(run_->pid(), "RANK=0");
  ASSERT_EQ(victims.size(), 1u);
  ::kill(victims[0], SIGSEGV);
  const ShellResult result = run_->wait();
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(fmt::format("error: rank 0 (process {})", victims[0])), HasSubstr("SIGSEGV")));
  expect_ranks_gone();
}

TEST_F(HangingTraining, AStoppedRankIsNamedAndTheOthersEnd) {
  const auto victims = children_of(run_->pid(), "RANK=1");
  ASSERT_EQ(victims.size(), 1u);
  ::kill(victims[0], SIGSTOP);
  const ShellResult result = run_->wait(std::chrono::seconds(30));
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_THAT(
      result.err,
      AllOf(
          ContainsRegex(
              "error: rank 1 on [^ ]+ has made no progress for [0-9.]+ s: stopped by a signal \\(state T\\)"),
          HasSubstr("rank 0 waits in "),
          HasSubstr("stretto inspect " + workspace_.path("run/flight_record.json"))));
  expect_ranks_gone();
  const ShellResult told = shell(STRETTO_PROGRAM " inspect " + workspace_.path("run"));
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out,
              AllOf(ContainsRegex(fmt::format(
                        "rank 1 \\(process {}\\) was stopped by a signal \\(state T\\); [0-9]+ collectives",
                        victims[0])),
                    ContainsRegex("all_reduce \\[[0-9]+\\] float64 #[0-9]+ of group world")));
}

TEST_F(BrokenRun, AnInterruptEndsAll) {
  ::kill(run_->pid(), SIGINT);
  const ShellResult result = run_->wait();
  EXPECT_EQ(result.exit_code, 0) << "it saves and exits with 0; resume_test.cpp tests the saved state";
  expect_ranks_gone();
}

TEST_F(BrokenRun, RanksEndWithTheirLauncher) {
  ::kill(run_->pid(), SIGKILL);
  run_->wait();
  EXPECT_TRUE(eventually([&] { return ::kill(ranks_[0], 0) != 0 && ::kill(ranks_[1], 0) != 0; }));
  EXPECT_FALSE(workspace_.has("run/model"));
}

TEST(NonFinite, ANaNLossIsRefusedBeforeTheStep) {
  const Workspace workspace;
  const ShellResult result = workspace.run(
      "train", 2, "optimizer.lr=1e30 scheduler.warmup_ratio=0 training.precision=fp32 evaluate.every=never");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("error: step 2: "), HasSubstr("is not finite"),
                                HasSubstr("the step was not taken"), HasSubstr("optimizer.lr")));
  EXPECT_EQ(workspace.losses("run").size(), 1u);
  EXPECT_FALSE(workspace.has("run/model"));
}

// An evaluation may detect the broken model first.
TEST(NonFinite, ANaNEvaluationIsReported) {
  const Workspace workspace;
  const ShellResult result = workspace.run(
      "train", 2,
      "optimizer.lr=1e30 scheduler.warmup_ratio=0 training.precision=fp32 training.global_batch_size=64");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("error: step 1: the evaluation's loss (nan) is not finite"));
  EXPECT_FALSE(workspace.has("run/model"));
}

}  // namespace
}  // namespace stretto
