#include "tests/support/hosts.h"

#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Tests `stretto train` on several hosts, with the same command on each.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double rounding = 1e-9;
const std::string settings = "training.max_steps=12 evaluate.every=never ";

class TrainHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
  std::string on_host(int node, int nodes, int ranks, const std::string& own_settings) const {
    return "export STRETTO_SECRET=s3cret; " + workspace_.command("train", ranks, settings + own_settings) +
           fmt::format(" --nodes {} --node-rank {} --master-addr 10.77.0.1", nodes, node);
  }
  std::vector<HostResult> run(const std::vector<std::string>& commands) const {
    auto results = run_on_hosts(workspace_.path(), commands);
    for (const HostResult& result : results) EXPECT_THAT(result.left, IsEmpty());
    return results;
  }
  void train(const std::string& folder, int nodes, int ranks, const std::string& own_settings = "") const {
    std::vector<std::string> commands;
    for (int node = 0; node < nodes; ++node)
      commands.push_back(on_host(node, nodes, ranks, own_settings + " output=" + workspace_.path(folder)));
    for (const HostResult& result : run(commands)) EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  Workspace workspace_;
};

TEST_F(TrainHosts, ThePlacesOfRanksChangeNothing) {
  workspace_.train("1x4", 4, settings);
  train("2x2", 2, 2);
  train("4x1", 4, 1);
  expect_same_steps(workspace_, "1x4", "2x2");
  expect_same_steps(workspace_, "1x4", "4x1");
  EXPECT_THAT(workspace_.read("2x2/logger_logs/training_0.log"),
              HasSubstr("shared memory, 2 ranks on this host; TCP between 2 hosts"));
  for (const char* rank : {"1", "2", "3"})
    EXPECT_THAT(workspace_.read(fmt::format("2x2/logger_logs/training_{}.log", rank)), Not(IsEmpty()));
}

TEST_F(TrainHosts, DeterministicRunsHaveTheSameBitsOnAnyHosts) {
  const std::string deterministic =
      settings + "training.precision=fp32 training.deterministic=true training.batch_size=4 ";
  workspace_.train("1x1", 1, deterministic);
  for (const std::string strategy : {"ddp", "fsdp", "hsdp"}) {
    train("2x2", 2, 2, deterministic + "resume=false training.strategy=" + strategy);
    EXPECT_EQ(workspace_.losses("2x2"), workspace_.losses("1x1")) << strategy;
    EXPECT_TRUE(workspace_.read("2x2/model/model.safetensors") ==
                workspace_.read("1x1/model/model.safetensors"))
        << strategy;
  }
}

// laws_test.cpp tests the same over TCP alone, as with one rank per host.
TEST_F(TrainHosts, EveryStrategyTakesTheSameSteps) {
  workspace_.train("ddp", 4, settings);
  for (const std::string strategy : {"zero1", "zero2", "fsdp", "hsdp"}) {
    train("sharded", 2, 2, "resume=false training.strategy=" + strategy);
    expect_same_steps(workspace_, "ddp", "sharded");
  }
}

TEST_F(TrainHosts, LayersAreDividedInsideHostsAndOverThemWithAWarning) {
  workspace_.train("1x1", 1, settings);
  const auto train_divided = [&](const std::string& folder, int ranks) {
    std::vector<std::string> commands;
    for (int node = 0; node < 2; ++node)
      commands.push_back(on_host(node, 2, ranks, "training.mesh.tp=2 output=" + workspace_.path(folder)));
    std::string errors;
    for (const HostResult& result : run(commands)) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      errors += result.err;
    }
    expect_same_steps(workspace_, "1x1", folder);
    return errors;
  };
  const std::string warning =
      "the 2 ranks with parts of one layer are on different hosts, so that each layer sends";
  EXPECT_THAT(train_divided("2x2", 2), Not(HasSubstr(warning)));
  EXPECT_THAT(
      workspace_.read("2x2/logger_logs/training_0.log"),
      HasSubstr("mesh       dp 2 x tp 2: each layer is divided among 2 ranks, which communicate by shared"));
  EXPECT_THAT(train_divided("2x1", 1),
              HasSubstr("warning: --set training.mesh.tp=2: training.mesh.tp: " + warning));
}

// Ranks wait for each other's parts of layers in shared memory, and for shards in shared memory and by TCP.
TEST_F(TrainHosts, LayersAreDividedWithinHosts) {
  workspace_.train("ddp", 2, settings);
  train("divided", 2, 4, "training.mesh.tp=2 training.strategy=fsdp");
  expect_same_steps(workspace_, "ddp", "divided");
}

TEST_F(TrainHosts, HostsMayHaveDifferentNumbersOfRanks) {
  workspace_.train("1x3", 3, settings);
  const std::string output = "output=" + workspace_.path("1+2");
  for (const HostResult& result : run({on_host(0, 2, 1, output), on_host(1, 2, 2, output)}))
    EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_same_steps(workspace_, "1x3", "1+2");
}

TEST_F(TrainHosts, RecipesThatDifferAreNamedBeforeARankStarts) {
  const auto results = run({on_host(0, 2, 1, "optimizer.lr=0.002"), on_host(1, 2, 1, "training.seed=8")});
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(
        result.err,
        AllOf(
            HasSubstr(
                "the hosts differ:\n  optimizer.lr: 0.002 on host0 (node rank 0) (--set optimizer.lr=0.002), "
                "0.001 on host1 (node rank 1) ("),
            HasSubstr("recipe.yaml:17:7)"), HasSubstr("\n  training.seed: 7 on host0 (node rank 0)"),
            HasSubstr("8 on host1 (node rank 1)")));
  }
  EXPECT_FALSE(workspace_.has("run"));
}

TEST_F(TrainHosts, ARunThatRanksRefuseLeavesNothing) {
  const std::string bad = "data.max_length=33";
  for (const HostResult& result : run({on_host(0, 2, 2, bad), on_host(1, 2, 2, bad)}))
    EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_FALSE(workspace_.has("run"));
}

TEST_F(TrainHosts, DataThatDifferAreNamedByHost) {
  workspace_.write("other.tsv", make_rows(64, 9));
  const auto results =
      run({on_host(0, 2, 2, ""), on_host(1, 2, 2, "data.train=" + workspace_.path("other.tsv"))});
  for (const HostResult& result : results) EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(results[0].err, AllOf(ContainsRegex("data.train: [^\n]* on ranks 0 and 1 on host0"),
                                    ContainsRegex("on ranks 2 and 3 on host1 \\([^\n]*other.tsv\\)")));
}

// Each host has a separate /dev/shm/run. The first one keeps all checkpoints and sends them to the second.
TEST_F(TrainHosts, CheckpointsNeedNoSharedFolder) {
  workspace_.train("undisturbed", 4, settings);
  const std::string sharded = "checkpoint.every=3 training.strategy=fsdp output=";
  const auto on_hosts = [&](const std::string& own_settings) {
    const auto command = [&](int node) {
      return fmt::format(
          "([ ! -e {1} ] || cp -r {1} /dev/shm/run; {0}); code=$?; rm -rf {1}; cp -r /dev/shm/run {1}; exit $code",
          on_host(node, 2, 2, sharded + "/dev/shm/run " + own_settings), node == 0 ? "first" : "second");
    };
    const auto results = run({command(0), command(1)});
    for (const HostResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
    return results[0].err;
  };
  EXPECT_THAT(
      on_hosts("training.steps_this_run=5"),
      ContainsRegex("checkpoints are kept in /dev/shm/run/checkpoints on [^;]*; ranks that do not see it, "
                    "such as rank 2 \\(/dev/shm/run/checkpoints on"));
  EXPECT_TRUE(workspace_.has("first/checkpoints/step-00000005/rank-00003.safetensors"));
  EXPECT_TRUE(!workspace_.has("second/checkpoints") ||
              std::filesystem::is_empty(workspace_.path("second/checkpoints")));

  // The run takes some steps on one host and continues on two.
  const ShellResult on_one = workspace_.run(
      "train", 3, settings + "training.steps_this_run=3 " + sharded + workspace_.path("first"));
  ASSERT_EQ(on_one.exit_code, 0) << on_one.err;
  EXPECT_THAT(on_one.err, HasSubstr("resumed    after step 5"));
  EXPECT_THAT(on_hosts(""), AllOf(HasSubstr("fetching   /dev/shm/run/checkpoints/step-00000008: "),
                                  HasSubstr("resumed    after step 8")));
  expect_same_steps(workspace_, "undisturbed", "first");
  EXPECT_FALSE(workspace_.has("second/model"));
}

// Rank 3 is killed after two checkpoints, in the first start only.
TEST_F(TrainHosts, AllHostsRestartFromTheNewestCheckpoint) {
  workspace_.train("undisturbed", 4, settings + "training.max_steps=60");
  const std::string own = "training.max_steps=60 checkpoint.every=5 output=" + workspace_.path("run");
  const std::string kill =
      "(until grep -qs \"step 12/\" run/logger_logs/training_0.log; do sleep 0.02; done; "
      "kill -9 $(grep -lsz ^RANK=3 /proc/[0-9]*/environ | cut -d/ -f3 | head -1)) & ";
  const auto results =
      run({on_host(0, 2, 2, own) + " --max-restarts 1", kill + on_host(1, 2, 2, own) + " --max-restarts 1"});
  for (const HostResult& result : results) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(
        result.err,
        ContainsRegex(
            "restart 1 of 1 in 1 s, because rank 3 on host1 \\(process [0-9]+\\) was killed by SIGKILL"));
  }
  EXPECT_THAT(results[0].err, ContainsRegex("resumed    after step [0-9]+"));
  expect_same_steps(workspace_, "undisturbed", "run");
}

TEST_F(TrainHosts, CtrlCOnOneHostSavesOnAll) {
  const std::string own =
      "training.max_steps=1000000 checkpoint.every=1000000 output=" + workspace_.path("run");
  const std::string stop =
      "(until grep -q loss run/metrics.jsonl; do sleep 0.02; done 2> /dev/null; kill -TERM $(grep -lxs stretto /proc/[0-9]*/comm | cut -d/ -f3)) & ";
  const auto results = run({on_host(0, 2, 1, own), stop + on_host(1, 2, 1, own)});
  for (const HostResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(results[0].err,
              AllOf(HasSubstr("host1: SIGTERM (Terminated): stopping"), HasSubstr("the state is saved")));
}

TEST_F(TrainHosts, ParametersYmlNamesTheHosts) {
  for (const int node : {0, 1}) {
    workspace_.write(
        fmt::format("parameters{}.yml", node),
        fmt::format("dist-params:\n  nodes: 2\n  gpus: 2\n  current_node: {}\n  master_addr: '10.77.0.1'\n  "
                    "master_port: '1234'\n",
                    node));
  }
  const auto command = [&](int node) {
    std::string text = workspace_.command("train", 2, settings + "output=" + workspace_.path("run"));
    text.replace(text.find(" -N 2"), 5, "");
    return text + fmt::format(" --parameters {}", workspace_.path(fmt::format("parameters{}.yml", node)));
  };
  const auto results = run({command(0), command(1)});
  EXPECT_THAT(results, Each(Field(&HostResult::exit_code, 0))) << results[0].err;
  EXPECT_THAT(results[0].err,
              HasSubstr("host0 (node rank 0, ranks 0 to 1), host1 (node rank 1, ranks 2 to 3)"));
  const ShellResult contradiction = shell(command(0) + " --nodes 3");
  EXPECT_EQ(contradiction.exit_code, 2);
  EXPECT_THAT(contradiction.err, HasSubstr("dist-params.nodes: 2 contradicts --nodes 3; remove one of them"));
}

// Open MPI's mpirun itself.
TEST(TrainMpirun, StartsTheSameJob) {
  if (shell("mpirun --version").exit_code != 0)
    GTEST_SKIP() << "Open MPI's mpirun (package openmpi-bin) is missing";
  const Workspace workspace;
  workspace.train("launched", 2, settings);
  std::string command = workspace.command("train", 1, settings + "output=" + workspace.path("run"));
  command.replace(command.find("exec "), 5,
                  "exec mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 ");
  const ShellResult result = shell(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(relative_difference(workspace.losses("launched"), workspace.losses("run")), rounding);
  // A file of Accelerate for mpirun is accepted by ranks that mpirun has started.
  workspace.write(
      "mpi.yaml",
      "distributed_type: MULTI_CPU\nmpirun_config:\n  mpirun_hostfile: hosts\nnum_processes: 2\n");
  command.replace(command.find(workspace.path("run")), workspace.path("run").size(),
                  workspace.path("accelerate"));
  const ShellResult accelerate = shell(command + " --accelerate " + workspace.path("mpi.yaml"));
  ASSERT_EQ(accelerate.exit_code, 0) << accelerate.err;
  EXPECT_LT(relative_difference(workspace.losses("run"), workspace.losses("accelerate")), rounding);
}

}  // namespace
}  // namespace stretto
