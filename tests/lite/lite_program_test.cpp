#include "tests/support/shell.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

// --- lite_laws: each case compares Lite with a plain loop, on one rank and on several

class LiteLaw : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(LiteLaw, EqualsThePlainLoop) {
  const auto [name, ranks] = GetParam();
  const TempFolder folder;
  const auto run = shell(fmt::format("{}/lite_laws {} {} {}", PROGRAMS, name, ranks, folder.path().string()));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LiteLaw,
    ::testing::Combine(::testing::Values("torch_optimizers", "own_optimizer", "data_loader",
                                         "accumulated_sums", "accumulated_means", "own_zero_grad",
                                         "two_models", "lbfgs", "own_lbfgs", "batches_of_ones_own", "dataset",
                                         "buffers_and_dropout", "bf16", "fp16_own", "fp16_torch",
                                         "collectives", "products"),
                       ::testing::Values(1, 2)),
    [](const auto& info) { return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param)); });

TEST(Lite, ThreeRanksOnFewerSamples) {
  for (const char* name : {"own_optimizer", "accumulated_sums"}) {
    const auto run = shell(fmt::format("{}/lite_laws {} 3", PROGRAMS, name));
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

// On four ranks, of which four, two or one have the parts of a layer.
TEST(Lite, RandomNumbersAreThoseOfTheMesh) {
  const TempFolder folder;
  const auto run = shell(fmt::format("{}/lite_laws random_numbers 4 {}", PROGRAMS, folder.path().string()));
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// Each call trains one more epoch and compares with a plain loop over all epochs.
TEST(Lite, ResumesCheckpointsOfOtherWorldSizes) {
  for (const char* name : {"saved_torch", "saved_own", "saved_schedule"}) {
    const TempFolder folder;
    int epoch = 0;
    for (const int ranks : {2, 1, 3}) {
      const auto run =
          shell(fmt::format("{}/lite_laws {} {} {}/c", PROGRAMS, name, ranks, folder.path().string()));
      EXPECT_EQ(run.exit_code, 0) << run.err;
      EXPECT_EQ(run.out, fmt::format("epoch {}\n", ++epoch));
    }
    const auto list = shell(fmt::format("{} checkpoints ls {}/c", STRETTO_PROGRAM, folder.path().string()));
    EXPECT_THAT(list.out,
                ::testing::AllOf(::testing::Not(HasSubstr("step-00000001")), HasSubstr("step-00000003")));
  }
}

TEST(Lite, ASchedulerThatIsNotRegisteredIsReportedAtLoad) {
  const TempFolder folder;
  const auto run = [&](const char* name) {
    return shell(fmt::format("{}/lite_laws {} 1 {}", PROGRAMS, name, folder.path().string()));
  };
  EXPECT_EQ(run("saved_schedule").exit_code, 0);
  const ShellResult forgotten = run("forgotten_schedule");
  EXPECT_EQ(forgotten.exit_code, 1);
  EXPECT_THAT(forgotten.err, has_all("counters of 1 scheduler", "this program has registered 0"));
}

// The checkpoint was written by an earlier version on 2 ranks, after one epoch
// (scripts/make_golden_checkpoints.py).
TEST(Lite, ResumesCheckpointsOfAnEarlierVersion) {
  for (const char* name : {"own", "torch"}) {
    for (const int ranks : {1, 2}) {
      const TempFolder folder;
      std::filesystem::copy(fmt::format("{}/lite_{}", GOLDEN_CHECKPOINTS, name), folder.path(),
                            std::filesystem::copy_options::recursive);
      const auto run =
          shell(fmt::format("{}/lite_laws saved_{} {} {}", PROGRAMS, name, ranks, folder.path().string()));
      EXPECT_EQ(run.exit_code, 0) << run.err;
      EXPECT_EQ(run.out, "epoch 2\n");
    }
  }
}

// --- ways to start ranks

TEST(Lite, JoinsTheRanksOfLaunchers) {
  const std::string program = fmt::format("{}/lite_laws own_optimizer", PROGRAMS);
  for (const char* devices : {"0", "2"}) {
    const auto run = shell(fmt::format("{} launch -N 2 -- {} {}", STRETTO_PROGRAM, program, devices));
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
  const auto refused = shell(fmt::format("{} launch -N 3 -- {} 2", STRETTO_PROGRAM, program));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, has_all("devices = 2", "the launcher started 3 ranks"));
}

TEST(Lite, JoinsTheRanksOfTorchrun) {
  if (shell(fmt::format("test -x {}", TORCH_PYTHON)).exit_code != 0)
    GTEST_SKIP() << "the libtorch in use lies in no Python's packages";
  const auto run = shell(fmt::format(
      "OMP_NUM_THREADS=1 {} -m torch.distributed.run --standalone --nproc-per-node 2 --no-python {}/lite_laws own_optimizer 2",
      TORCH_PYTHON, PROGRAMS));
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// As with srun and mpirun, two processes find each other through the launcher's variables only.
TEST(Lite, JoinsTheRanksOfSlurmAndOpenMpi) {
  const std::string program = fmt::format("{}/lite_laws own_optimizer 2", PROGRAMS);
  const auto run_both = [&](const std::string& first, const std::string& second) {
    return shell(
        fmt::format("{} {} & {} {}; code=$?; wait $! && exit $code", first, program, second, program));
  };
  const std::string slurm =
      "SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=localhost SLURM_NODEID=0 ";
  const auto by_slurm =
      run_both(slurm + "SLURM_PROCID=0 SLURM_LOCALID=0", slurm + "SLURM_PROCID=1 SLURM_LOCALID=1");
  EXPECT_EQ(by_slurm.exit_code, 0) << by_slurm.err;
  const std::string mpi = "PMIX_NAMESPACE=prterun-$$@1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 ";
  const auto by_mpi = run_both(mpi + "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0",
                               mpi + "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1");
  EXPECT_EQ(by_mpi.exit_code, 0) << by_mpi.err;
}

TEST(Lite, AProgramThatStartsItsRanksPassesOnOutputAndExitCode) {
  const TempFolder folder;
  const auto run = shell(fmt::format("{}/lite_laws saved_own 2 {}", PROGRAMS, folder.path().string()));
  EXPECT_EQ(run.out, "epoch 1\n");
  const auto failed = shell(fmt::format("{}/lite_misuse step_first 2", PROGRAMS));
  EXPECT_EQ(failed.exit_code, 1);
}

// --- lite_misuse

struct Misuse {
  const char* arguments;
  std::vector<const char*> named = {};  // by the message
};
void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.arguments; }

class LiteMisuse : public ::testing::TestWithParam<Misuse> {};

TEST_P(LiteMisuse, EndsWithAMessage) {
  const auto run = shell(fmt::format("cd /tmp && {}/lite_misuse {}", PROGRAMS, GetParam().arguments));
  EXPECT_GT(run.exit_code, 0) << "a rank waited for a timeout";
  for (const char* part : GetParam().named) EXPECT_THAT(run.err, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LiteMisuse,
    ::testing::Values(
        Misuse{"setup_twice 1", {"setup: ", "already set up, as model 0"}},
        Misuse{"backward_first 1", {"backward: no model was set up", "setup(model, optimizer)"}},
        Misuse{"own_backward 1", {"computed outside of stretto's backward"}},
        Misuse{"step_first 1", {"SGD: step: model 0 has no gradients", "Lite::backward"}},
        Misuse{"step_unsynchronised 1", {"last backward before a step", "outside of no_backward_sync"}},
        Misuse{"parameter_replaced 1", {"parameter weight was replaced after setup"}},
        Misuse{"parameter_added 1", {"parameter 1.weight was added to model 0", "after it was set up"}},
        Misuse{"gradient_replaced 1", {"the gradient of weight was replaced or dropped"}},
        Misuse{"two_devices 1", {"parameter shift is on meta", "others are on cpu", "on one device"}},
        Misuse{"wrong_type 1", {"parameter weight is [2, 2] Double", "requires Float parameters"}},
        Misuse{"complex_parameter 1",
               {"parameter phase is [2] ComplexFloat; only dense real floating-point"}},
        Misuse{"foreign_optimizer 1", {"a tensor [2, 2] Float", "not a parameter of model 0"}},
        Misuse{"two_own_optimizers 1", {"found 2 of stretto's and 0 of torch's"}},
        Misuse{"mixed_losses 1",
               {"a mean (Tensor) and a sum with its count (Loss)", "cannot be accumulated"}},
        Misuse{"loss_of_many 1", {"the loss is [4, 2] Float", "a single element"}},
        Misuse{"nonfinite 1", {"clip_gradients: the gradient of weight is not finite"}},
        Misuse{"no_autocast 1 precision=bf16", {"precision is bf16", "without autocast"}},
        Misuse{"lbfgs_saved 1", {"state of this torch optimizer", "supported: Adagrad"}},
        Misuse{"parts_of_different_sizes 1", {"its parts hold 4 and 3 samples"}},
        Misuse{"step_first 1 strategy=fsdp2", {"Lite: strategy = \"fsdp2\"", "known, but not available"}},
        Misuse{"step_first 1 precision=16-true", {"precision = \"16-true\"", "master weights"}},
        Misuse{"step_first 1 precision=bf17", {"precision = \"bf17\"", "fp32, bf16, fp16, fp64"}},
        Misuse{"step_first 1 accelerator=tpu", {"accelerator = \"tpu\"", "supported: auto, cpu"}},
        Misuse{"step_first 2 num_nodes=2", {"num_nodes = 2", "without a launcher"}},
        Misuse{"step_first -1", {"devices = -1 is out of range"}},
        Misuse{"step_first 1 tp=0", {"Lite: tp = 0 is out of range", "1 .. 4096"}},
        Misuse{"step_first 2 tp=3", {"Lite: tp: 2 ranks ", "groups of 3", "a multiple of 3 ranks (-N)"}},
        Misuse{"step_first 2 tp=2", {"setup: no parameter of the model is divided", "2 ranks of Lite's tp"}},
        Misuse{"divided_by_torch 2 tp=2", {"setup: torch's optimizers do not know that the layers"}},
        Misuse{"divided_with_torch_dropout 2 tp=2", {"setup: torch::nn::Dropout draws from a generator per"}},
        Misuse{"divided_with_whole_rows 2 tp=2 sequence_parallel=true",
               {"setup: no layer of the model divides rows", "LiteOptions::sequence_parallel"}},
        Misuse{"parts_of_other_samples 2 tp=2",
               {"loader 0: ", "first batch at position 1 of tp", "position 0"}},
        Misuse{"loaders_of_different_lengths 2",
               {"rank 1 is at the end of loader 0 after 4 batches", "the same number of batches"}},
        Misuse{"batches_of_different_data 2", {"loader 0: ", "first batch on rank 1 differs from rank 0's"}},
        Misuse{"a_branch_of_one_rank 2", {"ranks diverged: ", "rank 0 is in a collective"}},
        Misuse{"one_rank_leaves 2",
               {"ranks diverged: ", "rank 0 is in backward of model 0", "rank 1 is leaving"}},
        Misuse{"one_rank_throws 2", {"the file of rank 1 is gone"}},
        Misuse{"one_rank_throws 2", {"rank 1 (process"}},
        Misuse{"one_rank_is_killed 2", {"was killed by SIGKILL"}},
        Misuse{"two_lites 1", {"another Lite exists already"}},
        Misuse{"a_backward_left_out 2",
               {"rank 0 is in backward of model 0, batch 2", "rank 1 is in backward of model 0, batch 3",
                "skipped a backward"}},
        Misuse{"never_synchronised 1",
               {"parameters of model 0 were changed", "last backward under no_backward_sync"}},
        Misuse{"models_of_different_sizes 2",
               {"setup: the parameters of model 0 differ", "rank 1 and rank 0",
                "(in names, shapes or requires_grad)"}},
        Misuse{"groups_of_own_optimizer 1", {"SGD: ", "no param_groups", "use set_lr()"}},
        Misuse{"torch_error 2",
               {"\n[rank 1] stretto: error: mat1 and mat2 shapes cannot be multiplied (4x3 and 2x2)\n"}}));

// An exception that main() does not catch ends the process without a core dump; the exit code shows whether a
// restart can help.
TEST(Lite, UncaughtExceptionsEndWithAnExitCode) {
  const auto code = [](const char* arguments) {
    return shell(fmt::format("{}/lite_misuse {}", PROGRAMS, arguments)).exit_code;
  };
  EXPECT_EQ(code("setup_twice 1"), 2) << "a configuration that cannot work";
  EXPECT_EQ(code("step_first 1 precision=bf17"), 2);
  EXPECT_EQ(code("one_rank_throws 2"), 1);
  EXPECT_EQ(code("malformed_data 1"), 2);
}

// Without stretto's launcher a rank writes to its own stderr.
TEST(Lite, ARankOutlivesTheReaderOfItsOutput) {
  const std::string rank = torchrun_variables(0, 1);
  const std::string program = std::string(PROGRAMS) + "/lite_misuse logs_into_a_closed_pipe 1";
  for (const std::string stream : {"2>&1 | true", "2>&-", "2>/dev/full"}) {
    const TempFolder folder;
    const std::string result = folder.path() / "result";
    shell(fmt::format("({} LITE_RESULT={} {}) {}", rank, result, program, stream));
    EXPECT_EQ(shell("cat " + result).out, "rank 0 lives\n") << stream;
  }
}

}  // namespace
}  // namespace stretto
