#include "tests/support/shell.h"
#include "tests/train/workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/message_support.h"
#include "stretto/cluster/socket.h"

// Tests ranks that mpirun starts and that communicate by MPI (training.backend: mpi).
namespace stretto {
namespace {

using ::testing::HasSubstr;

const std::string mpirun =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --bind-to none --oversubscribe ";
const std::string settings = "training.max_steps=8 evaluate.every=never ";

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shell("mpirun --version").exit_code != 0 || !has_plugin)
      GTEST_SKIP() << "Open MPI (packages openmpi-bin, libopenmpi-dev) is missing";
  }
  ShellResult train(const std::string& folder, int ranks, const std::string& own_settings) const {
    std::string command = workspace_.command(
        "train", 1, settings + "training.backend=mpi output=" + workspace_.path(folder) + " " + own_settings);
    command.replace(command.find("exec "), 5, mpirun + "-n " + std::to_string(ranks) + " ");
    return shell(command);
  }
  static constexpr bool has_plugin = STRETTO_HAS_MPI;
  Workspace workspace_;
};

TEST_F(Mpi, TakesTheStepsOfSharedMemory) {
  workspace_.train("ddp", 2, settings);
  for (const std::string strategy : {"ddp", "zero2", "fsdp", "ddp training.precision=bf16"}) {
    const std::string own = "resume=false training.strategy=" + strategy;
    const ShellResult result = train("mpi", 2, own);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(workspace_.read("mpi/logger_logs/training_0.log"), HasSubstr("comm       mpi"));
    const double bound = strategy.ends_with("bf16") ? 1e-2 : 1e-9;
    EXPECT_LT(relative_difference(workspace_.losses("mpi"), workspace_.losses("ddp")), bound) << strategy;
  }
}

TEST_F(Mpi, DeterministicRunsHaveTheSameBits) {
  const std::string deterministic =
      "training.precision=fp32 training.deterministic=true training.batch_size=4 ";
  workspace_.train("one", 1, settings + deterministic);
  const ShellResult result = train("mpi", 4, deterministic);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(workspace_.read("mpi/model/model.safetensors") ==
              workspace_.read("one/model/model.safetensors"));
}

TEST_F(Mpi, RanksThatMpiHasNotStartedAreRefused) {
  const ShellResult result =
      workspace_.run("train", 2, settings + "training.backend=mpi output=" + workspace_.path("none"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, has_all("MPI has not started this rank", "mpirun", "srun --mpi=pmix"));
  EXPECT_FALSE(workspace_.has("none/config.yaml"));
}

// The variables of MPICH's mpirun. Each process is then a world of its own to Open MPI.
TEST_F(Mpi, RanksOfAnotherMpiAreNamed) {
  const std::string command =
      workspace_.command("train", 1, settings + "training.backend=mpi output=" + workspace_.path("none"));
  const int port = cluster::bound_endpoint(cluster::bind_socket({"127.0.0.1", 0})).port;
  const ShellResult result = shell(fmt::format(
      "export PMI_SIZE=2 MPI_LOCALNRANKS=2 MASTER_PORT={} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;"
      " (export PMI_RANK=1 MPI_LOCALRANKID=1; {}) & (export PMI_RANK=0 MPI_LOCALRANKID=0; {}); code=$?; wait; exit $code",
      port, command, command));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              has_all("MPI counts 1 of these 2 ranks", "the mpirun of another MPI than Open MPI v"));
}

}  // namespace
}  // namespace stretto
