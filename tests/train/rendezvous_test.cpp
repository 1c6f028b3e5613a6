#include "tests/support/hosts.h"
#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Tests `stretto train` as a rank that another program started: it finds the others through torchrun's
// variables.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string python = TORCH_PYTHON;
const std::string settings = "training.max_steps=10 evaluate.every=never output=";

void expect_same_losses(const Workspace& workspace, const std::string& run) {
  workspace.train("launched", 2, "training.max_steps=10 evaluate.every=never");
  EXPECT_LT(relative_difference(workspace.losses("launched"), workspace.losses(run)), 1e-12);
}

TEST(TrainRendezvous, RanksStartedManuallyConnectThroughMasterPort) {
  const Workspace workspace;
  const int port = free_port();
  const std::string command = workspace.command("train", 1, settings + workspace.path("run"));
  BackgroundShell first(torchrun_variables(0, 2, port) + command);
  BackgroundShell second(torchrun_variables(1, 2, port) + command);
  const ShellResult zero = first.wait(), one = second.wait();
  EXPECT_EQ(zero.exit_code, 0) << zero.err;
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(zero.err, HasSubstr("step 10/10"));
  EXPECT_THAT(one.err, IsEmpty()) << "only rank 0 prints";
  EXPECT_THAT(workspace.read("run/logger_logs/training_0.log"), HasSubstr("step 10/10"));
  EXPECT_THAT(workspace.read("run/logger_logs/training_1.log"), Not(IsEmpty()));
  expect_same_losses(workspace, "run");
}

// Two folders represent two hosts without a shared file system: the same relative path is a different folder
// on each.
TEST(TrainRendezvous, CheckpointsGoToTheFolderOfRank0) {
  const Workspace workspace;
  for (const char* host : {"host-a", "host-b"}) std::filesystem::create_directory(workspace.path(host));
  const auto run = [&](const std::string& own_settings) {
    const int port = free_port();
    const std::string command =
        workspace.command("train", 1, settings + "run training.max_steps=3 " + own_settings);
    const auto on = [&](const std::string& host, int rank) {
      return "cd " + workspace.path(host) + " && " + torchrun_variables(rank, 2, port) + command;
    };
    BackgroundShell first(on("host-a", 0));
    BackgroundShell second(on("host-b", 1));
    for (const ShellResult& rank : {first.wait(), second.wait()}) EXPECT_EQ(rank.exit_code, 0) << rank.err;
  };
  run("checkpoint.every=1 training.steps_this_run=2");
  EXPECT_TRUE(workspace.has("host-a/run/checkpoints/step-00000002/rank-00001.safetensors"));
  run("checkpoint.every=1");
  EXPECT_TRUE(workspace.has("host-a/run/model/model.safetensors"));
  EXPECT_THAT(workspace.read("host-a/run/logger_logs/training_0.log"), HasSubstr("resumed    after step 2"));
  EXPECT_FALSE(workspace.has("host-b/run/checkpoints/step-00000002"));
}

TEST(TrainRendezvous, RunsUnderTorchrun) {
  const std::string finds =  // importing torch takes as long as the job
      " -c 'import sys; from importlib.util import find_spec; "
      "sys.exit(not all(map(find_spec, [\"torch\", \"typing_extensions\"])))'";
  if (shell(python + finds).exit_code != 0) {
    GTEST_SKIP() << "no Python with torch beside the libtorch in use";
  }
  const Workspace workspace;
  std::string command = workspace.command("train", 1, settings + workspace.path("run"));
  command.erase(0, command.find(STRETTO_PROGRAM));
  const ShellResult result =
      shell("OMP_NUM_THREADS=1 " + python +
            " -m torch.distributed.run --standalone --nproc-per-node 2 --no-python " + command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_same_losses(workspace, "run");
}

TEST(TrainRendezvous, RanksOfSeveralHostsTakeTheSameSteps) {
  if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  const Workspace workspace;
  const ShellResult result =
      shell(on_hosts(2, 2, workspace.command("train", 1, settings + workspace.path("run"))));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("shared memory, 2 ranks on this host; TCP between 2 hosts"));
  workspace.train("launched", 4, "training.max_steps=10 evaluate.every=never");
  EXPECT_LT(relative_difference(workspace.losses("launched"), workspace.losses("run")), 1e-9);
}

TEST(TrainRendezvous, ARankWhosePeerDiesReportsIt) {
  const Workspace workspace;
  const int port = free_port();
  const std::string command = workspace.command(
      "train", 1, "training.max_steps=1000000 evaluate.every=never output=" + workspace.path("run"));
  BackgroundShell first(torchrun_variables(0, 2, port) + command);
  BackgroundShell second(torchrun_variables(1, 2, port) + command);
  ASSERT_TRUE(eventually([&] { return workspace.recorded_lines("run") > 0; }));
  ::kill(second.pid(), SIGKILL);
  const ShellResult zero = first.wait();
  EXPECT_EQ(zero.exit_code, 1);
  EXPECT_THAT(zero.err, AllOf(HasSubstr("error: rank 0: "), HasSubstr(" failed: rank 1 (process "),
                              HasSubstr(") has ended")));
}

// More output than the pipe holds, which is full from the beginning; nothing reads it.
TEST(TrainRendezvous, ARankIsNotStoppedByItsUnreadOutput) {
  const Workspace workspace;
  const std::string code = workspace.path("code");
  BackgroundShell run(fmt::format(
      "(dd if=/dev/zero bs=65536 count=1 status=none >&2; ({} {}); echo $? > {}) 2>&1 > /dev/null | sleep 1000",
      torchrun_variables(0, 1),
      workspace.command("train", 1,
                        "training.max_steps=30 track.log_every=1 output=" + workspace.path("run")),
      code));
  EXPECT_TRUE(eventually([&] { return workspace.has("code") && workspace.read("code") == "0\n"; }));
  EXPECT_EQ(workspace.losses("run").size(), 30u);
}

// Fault injection (with_file_fault) must not be enabled by an environment variable alone.
TEST(TrainRendezvous, AVariableAloneMakesNoWriteFail) {
  const Workspace workspace;
  const ShellResult result =
      shell("STRETTO_FILE_FAULT=enospc@1+ " +
            workspace.command("train", 1, "training.max_steps=1 output=" + workspace.path("run")));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(TrainRendezvous, AnIncompleteEnvironmentIsRefused) {
  const Workspace workspace;
  const ShellResult result = shell("RANK=0 " + workspace.command("train", 1));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("WORLD_SIZE is not set although RANK is"));
  EXPECT_FALSE(workspace.has("run"));
}

}  // namespace
}  // namespace stretto
