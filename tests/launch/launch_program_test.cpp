#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"

// Tests of the command `stretto launch`.
namespace stretto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string stretto = STRETTO_PROGRAM;
const std::string probe = RANK_PROBE;
const std::string python = TORCH_PYTHON;

bool has_torch() {
  const std::string find = "import importlib.util as util; exit(not util.find_spec(\"torch\"))";
  static const bool found = shell(python + " -c '" + find + "'").exit_code == 0;
  return found;
}

TEST(LaunchProgram, EveryFormOfTheRankCountParses) {
  for (const std::string form : {"-N 3", "-N3", "-N=3", "-n 3", "-n=3", "--nproc-per-node 3",
                                 "--nproc-per-node=3", "--nproc_per_node 3"}) {
    const ShellResult result = shell(stretto + " launch --no-pin " + form + " -- " + probe);
    EXPECT_EQ(result.exit_code, 0) << form << result.err;
    EXPECT_THAT(result.out,
                AllOf(HasSubstr("probe 0 met 3\n"), HasSubstr("[rank 2] probe 2 of 3, local 2 of 3\n")))
        << form;
  }
}

TEST(LaunchProgram, WithoutACountAndWithoutGpusThereIsOneRank) {
  EXPECT_EQ(shell("CUDA_VISIBLE_DEVICES= " + stretto + " launch " + probe).out,
            "probe 0 of 1, local 0 of 1\nprobe 0 met 1\n");
}

TEST(LaunchProgram, ArgumentsAfterTheProgramBelongToIt) {
  const std::string arguments = "sh -c 'echo $0 $*' -- -N 5 --no-pin launch --help";
  const std::string expected = "-- -N 5 --no-pin launch --help\n";
  EXPECT_EQ(shell(stretto + " launch -N 1 " + arguments).out, expected);
  EXPECT_EQ(shell(stretto + " launch -N 1 -- " + arguments).out, expected);
}

TEST(LaunchProgram, MisuseIsReported) {
  const auto refusal = [](const std::string& arguments) {
    const ShellResult result = shell(stretto + " launch " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    return result.out + result.err;
  };
  EXPECT_THAT(refusal(""), HasSubstr("a program to launch is required"));
  EXPECT_THAT(refusal("-N 2 --"), HasSubstr("a program to launch is required"));
  EXPECT_THAT(refusal("--strat= -- true"), has_all("--strat:", "\"--\""));
  EXPECT_THAT(refusal("--log-dir= -- true"), has_all("--log-dir:", "\"--\""));
  EXPECT_THAT(refusal("-N 0 true"), has_all("\"0\"", "whole number from 1 to 4096"));
  EXPECT_THAT(refusal("-N=two true"), has_all("\"two\"", "whole number"));
  EXPECT_THAT(refusal("--max-restarts -1 true"), HasSubstr("--max-restarts"));
  EXPECT_THAT(refusal("--grace soon true"), has_all("--grace:", "\"soon\"", "from 0 to 31536000"));
  EXPECT_THAT(refusal("--ranks 2 true"), HasSubstr("--ranks"));
  EXPECT_THAT(refusal("no-such-program"), has_all("no-such-program", "PATH"));
}

TEST(LaunchProgram, ADeepspeedConfigurationIsTheStrategy) {
  const TempFolder folder;
  const std::string file = folder.path() / "ds.json";
  write_file_atomic(
      file, R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "gradient_clipping": 0.5})");
  const std::string launch = stretto + " launch --deepspeed " + file;
  const ShellResult result = shell(launch + " -- sh -c 'echo \"strategy $STRETTO_STRATEGY\"'");
  EXPECT_EQ(result.out, "strategy fsdp-bf16\n") << result.err;
  EXPECT_THAT(result.err, has_all("these settings are not applied:\n", "ds.json:1:", "gradient_clipping"));
  EXPECT_THAT(shell(launch + " -- stretto train a.yaml").err,
              has_all("--deepspeed:", "stretto train RECIPE --deepspeed "));
  EXPECT_THAT(shell(launch + " --strat zero1 -- true").err,
              HasSubstr("--strat and --deepspeed exclude one another"));
  write_file_atomic(file, R"({"zero_optimization": {"stage": 4}})");
  const ShellResult refused = shell(launch + " -- true");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, has_all("ds.json:1:33: zero_optimization.stage:", "\"4\"", "0, 1, 2, 3"));
}

TEST(LaunchProgram, FilesOfOtherToolsSetStrategyAndRanks) {
  const TempFolder folder;
  const std::string accelerate = folder.path() / "a.yaml", parameters = folder.path() / "p.yml";
  write_file_atomic(accelerate,
                    "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 2\ndebug: true\n");
  write_file_atomic(parameters,
                    "transformers-params: {use_fairscale_optimizer_sharding: True, batch_size: 8}\n"
                    "dist-params: {gpus: 2}\n");
  const std::string print = " -- sh -c 'test $RANK = 1 || echo \"$STRETTO_STRATEGY $WORLD_SIZE\"'";
  EXPECT_EQ(shell(stretto + " launch --accelerate " + accelerate + print).out, "fsdp-bf16 2\n");
  const ShellResult result = shell(stretto + " launch --params=" + parameters + print);
  EXPECT_EQ(result.out, "zero2 2\n") << result.err;
  EXPECT_THAT(result.err, has_all("these settings are not applied:\n", "p.yml:1:", "batch_size"));
  EXPECT_THAT(shell(stretto + " launch -N 3 --accelerate " + accelerate + print).err,
              has_all("a.yaml:3:16: num_processes: 2 contradicts -N 3"));
  EXPECT_THAT(shell(stretto + " launch --accelerate " + accelerate + " -- stretto train a.yaml").err,
              has_all("--accelerate:", "stretto train RECIPE --accelerate "));
}

TEST(LaunchProgram, ExitCodesAndSignalsArePassedOn) {
  EXPECT_EQ(shell(stretto + " launch -N 2 -- sh -c 'exit $((RANK * 5))'").exit_code, 5);
  const ShellResult killed =
      shell(stretto + " launch -N 2 -- sh -c '[ $RANK = 0 ] && exec sleep 1000; kill -ABRT $$'");
  EXPECT_EQ(killed.exit_code, 128 + SIGABRT);
  EXPECT_THAT(killed.err, AllOf(HasSubstr("error: rank 1 "), HasSubstr("SIGABRT (Aborted)")));
}

TEST(LaunchProgram, AFailedGroupIsRestartedOnRequest) {
  const std::string fails_once = " -N 2 -- sh -c 'exit $((7 - 7 * TORCHELASTIC_RESTART_COUNT))'";
  const ShellResult once = shell(stretto + " launch" + fails_once);
  EXPECT_EQ(once.exit_code, 7);
  EXPECT_THAT(once.err, Not(HasSubstr("restart")));
  const ShellResult again = shell(stretto + " launch --max-restarts 1" + fails_once);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("restart 1 of 1 in 1 s, because rank "));
}

TEST(LaunchProgram, LogFolderHasAFilePerRank) {
  const TempFolder folder;
  const std::string logs = folder.path() / "logger_logs";
  const ShellResult result = shell(stretto + " launch -N 2 --log-dir " + logs + " -- " + probe);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "probe 0 of 2, local 0 of 2\nprobe 0 met 2\n");
  EXPECT_THAT(read_file(logs + "/training_0.log"),
              ContainsRegex(" probe 0 of 2, local 0 of 2\n[-0-9:. ]+ probe 0 met 2\n$"));
  EXPECT_THAT(read_file(logs + "/training_1.log"),
              ContainsRegex(" probe 1 of 2, local 1 of 2\n[-0-9:. ]+ probe 1 met 2\n$"));
}

TEST(LaunchProgram, TheStoreRefusesARankWithAWrongSecret) {
  const ShellResult result = shell(stretto + " launch -N 1 -- env STRETTO_SECRET=guessed " + probe);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, has_all("probe: ", "at 127.0.0.1:", "refused",
                                  "(STRETTO_SECRET or STRETTO_SECRET_FILE)", "connection from 127.0.0.1"));
}

TEST(LaunchProgram, TheSameProgramRunsUnderTorchrunsVariables) {
  const std::string variables =
      "env RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ";
  EXPECT_EQ(shell(variables + probe).out, "probe 1 of 2, local 1 of 2\n");
  const ShellResult half = shell("env RANK=1 " + probe);
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.err, has_all("WORLD_SIZE is not set", "unset RANK"));
}

TEST(LaunchProgram, APlainTorchProgramRunsUnderIt) {
  if (!has_torch()) GTEST_SKIP() << "no Python with torch beside the libtorch in use";
  const ShellResult result = shell(stretto + " launch -N 2 -- " + python + " " + ALL_REDUCE_SCRIPT);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("rank 0 of 2 sums to 3.0\n"), HasSubstr("[rank 1] rank 1 of 2 sums to 3.0\n")));
}

TEST(LaunchProgram, NeedsNoLibtorch) { EXPECT_THAT(shell("ldd " + stretto).out, Not(HasSubstr("torch"))); }

}  // namespace
}  // namespace stretto
