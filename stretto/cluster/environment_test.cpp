#include "stretto/cluster/environment.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/cluster/socket.h"
#include "stretto/cluster/variables.h"

namespace stretto::cluster {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Getenv getenv_of(const Variables& variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

RankInfo read(const Variables& variables) { return read_rank_info(getenv_of(variables)); }

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

Variables torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"GROUP_RANK", "1"},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29400"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"TORCHELASTIC_RUN_ID", "none"}};
}

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

TEST(Environment, UnsetMeansASingleRank) {
  const RankInfo info = read({{"MASTER_ADDR", "algo-1"}, {"MASTER_PORT", "7777"}, {"RANK", ""}});
  EXPECT_FALSE(info.launched);
  EXPECT_EQ(info.rank, 0);
  EXPECT_EQ(info.world_size, 1);
  EXPECT_FALSE(info.store);
}

TEST(Environment, TorchrunIsRead) {
  const RankInfo info = read(torchrun());
  EXPECT_TRUE(info.launched);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.world_size, 4);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.local_world_size, 2);
  EXPECT_EQ(info.group_rank, 1);
  EXPECT_EQ(info.restart_count, 2);
  EXPECT_EQ(info.master_addr, "node0");
  EXPECT_EQ(info.master_port, 29400);
  EXPECT_TRUE(info.agent_store);
  EXPECT_FALSE(info.store);
}

Variables slurm() {
  return {{"SLURM_JOB_ID", "4711"},      {"SLURM_STEP_ID", "2"},
          {"SLURM_STEP_NUM_TASKS", "5"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
          {"SLURM_PROCID", "3"},         {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "1"},         {"SLURM_STEP_NODELIST", "node[07-08],big"}};
}

TEST(Environment, SlurmIsRead) {
  const RankInfo info = read(slurm());
  EXPECT_TRUE(info.launched);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.world_size, 5);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.local_world_size, 2);
  EXPECT_EQ(info.group_rank, 1);
  EXPECT_EQ(info.master_addr, "node07");
  EXPECT_FALSE(info.agent_store);
  const RankInfo last =
      read(with(slurm(), {{"SLURM_PROCID", "4"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "2"}}));
  EXPECT_EQ(last.local_world_size, 1);
  EXPECT_EQ(last.master_port, info.master_port);
  EXPECT_NE(read(with(slurm(), {{"SLURM_STEP_ID", "3"}})).master_port, info.master_port);
  const RankInfo chosen = read(with(slurm(), {{"MASTER_ADDR", "here"}, {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(chosen.master_addr, "here");
  EXPECT_EQ(chosen.master_port, 29500);
}

TEST(Environment, OneTaskMeansASingleRank) {
  EXPECT_FALSE(read(with(slurm(), {{"SLURM_STEP_NUM_TASKS", "1"}})).launched);
  EXPECT_FALSE(read({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).launched)
      << "a batch script";
  EXPECT_FALSE(read({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}).launched);
}

TEST(Environment, TheDeadlineOfCollectivesIsASetting) {
  using std::chrono::seconds;
  EXPECT_EQ(read(torchrun()).collective_timeout, seconds(600));
  EXPECT_EQ(read(with(torchrun(), {{"STRETTO_COLLECTIVE_TIMEOUT", "7200"}})).collective_timeout,
            seconds(7200));
  EXPECT_EQ(read(with(slurm(), {{"STRETTO_COLLECTIVE_TIMEOUT", "5"}})).collective_timeout, seconds(5));
  EXPECT_GT(read(with(torchrun(), {{"STRETTO_COLLECTIVE_TIMEOUT", "0"}})).collective_timeout,
            std::chrono::hours(1000));
  EXPECT_THAT(refusal(with(torchrun(), {{"STRETTO_COLLECTIVE_TIMEOUT", "10m"}})),
              has_all("STRETTO_COLLECTIVE_TIMEOUT=\"10m\"", "whole number"));
}

TEST(Environment, ASecretIsReadUnderEveryLauncher) {
  EXPECT_EQ(read(torchrun()).secret, "");
  EXPECT_EQ(read(with(torchrun(), {{"STRETTO_SECRET", "s"}})).secret, "s");
  EXPECT_EQ(read(with(slurm(), {{"STRETTO_SECRET", "s"}})).secret, "s");
}

TEST(Environment, TorchrunTakesPrecedenceOverSlurm) {
  Variables both = torchrun();
  both.merge(slurm());
  EXPECT_EQ(read(both).world_size, 4);
}

TEST(Socket, AddressIsWhatThePeerSees) {
  EXPECT_EQ(address_towards({"127.0.0.1", 80}), "127.0.0.1");
  EXPECT_THROW(address_towards({"no.such.host.invalid", 80}), DistributedError);
}

TEST(Environment, SlurmsListsAreRead) {
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("a1,b2"), "a1");
  EXPECT_EQ(first_host("gpu-[3,5]n,x"), "gpu-3n");
  EXPECT_EQ(first_host("tux[1-2]r[08-09]"), "tux1r08");
  EXPECT_EQ(tasks_of_node("4", 0), 4);
  EXPECT_EQ(tasks_of_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_of_node("2(x3),1", 3), 1);
  for (const char* list : {"", "x", "2(x", "2(x0)", "0", "2(x3),1"})
    EXPECT_THROW(tasks_of_node(list, 4), ConfigError) << list;
}

Variables open_mpi() {
  return {{"OMPI_COMM_WORLD_SIZE", "4"},       {"OMPI_COMM_WORLD_RANK", "3"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"PMIX_NAMESPACE", "prterun-a-1@1"}, {"MASTER_ADDR", "node0"}};
}

TEST(Environment, OpenMpiIsRead) {
  const RankInfo info = read(open_mpi());
  EXPECT_TRUE(info.launched);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.world_size, 4);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.local_world_size, 2);
  EXPECT_EQ(info.group_rank, 1);
  EXPECT_EQ(info.master_addr, "node0");
  Variables one_host = with(open_mpi(), {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}});
  one_host.erase("MASTER_ADDR");
  EXPECT_EQ(read(one_host).master_addr, "127.0.0.1");
}

Variables mpich() {
  return {{"PMI_SIZE", "4"},        {"PMI_RANK", "3"}, {"MPI_LOCALNRANKS", "2"},
          {"MPI_LOCALRANKID", "1"}, {"PMI_FD", "6"},   {"MASTER_ADDR", "node0"}};
}

TEST(Environment, MpichIsRead) {
  const RankInfo info = read(mpich());
  EXPECT_TRUE(info.launched);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.world_size, 4);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.local_world_size, 2);
  EXPECT_EQ(info.group_rank, 1);
  EXPECT_EQ(info.master_addr, "node0");
  EXPECT_FALSE(read({{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}}).launched) << "other managers set these, too";
  EXPECT_FALSE(read(with(mpich(), {{"PMI_SIZE", "1"}})).launched);
  EXPECT_THAT(refusal(with(mpich(), {{"MASTER_ADDR", ""}})),
              HasSubstr("mpirun -genv MASTER_ADDR <the first"));
}

TEST(Environment, EncryptionNeedsStrettosLauncher) {
  const Variables own = with(torchrun(), {{"STRETTO_STORE", "127.0.0.1:4711"}, {"STRETTO_SECRET", "s"}});
  EXPECT_FALSE(read(own).encrypt);
  EXPECT_TRUE(read(with(own, {{"STRETTO_ENCRYPT", "1"}})).encrypt);
  EXPECT_FALSE(read(with(own, {{"STRETTO_ENCRYPT", "0"}})).encrypt);
  EXPECT_THAT(refusal(with(own, {{"STRETTO_ENCRYPT", "yes"}})),
              has_all("STRETTO_ENCRYPT=\"yes\"", "expected 1, or 0"));
  for (const Variables& other : {torchrun(), slurm(), open_mpi(), mpich()}) {
    EXPECT_THAT(refusal(with(other, {{"STRETTO_ENCRYPT", "1"}})),
                has_all("STRETTO_ENCRYPT is set", "`stretto launch` or `stretto train`"));
  }
  EXPECT_FALSE(read({{"STRETTO_ENCRYPT", "1"}}).launched) << "the launcher's environment";
}

Variables slurm_task() {
  return {{"SLURM_JOB_ID", "4711"},
          {"SLURM_STEP_ID", "2"},
          {"SLURM_STEP_NUM_TASKS", "3"},
          {"SLURM_STEP_NUM_NODES", "3"},
          {"SLURM_NODEID", "1"},
          {"SLURM_PROCID", "1"},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_STEP_NODELIST", "node[07-08],big"}};
}

std::optional<HostTask> read_task(const Variables& variables) { return read_host_task(getenv_of(variables)); }

TEST(Environment, OneTaskPerNodeIsALauncher) {
  const auto task = read_task(slurm_task());
  ASSERT_TRUE(task);
  EXPECT_EQ(task->nodes, 3);
  EXPECT_EQ(task->node_rank, 1);
  EXPECT_EQ(task->ranks, 0);
  EXPECT_EQ(task->master.host, "node07");
  EXPECT_EQ(task->master.port, read(slurm()).master_port);
  EXPECT_FALSE(is_rank(getenv_of(slurm_task())));
  EXPECT_EQ(read_task(with(slurm_task(), {{"SLURM_CPUS_PER_TASK", "8"}}))->ranks, 8);
  EXPECT_EQ(read_task(with(slurm_task(), {{"SLURM_CPUS_PER_TASK", "8"}, {"OMP_NUM_THREADS", "4"}}))->ranks,
            2);
  EXPECT_EQ(read_task(with(slurm_task(), {{"SLURM_CPUS_PER_TASK", "8"}, {"SLURM_GPUS_ON_NODE", "4"}}))->ranks,
            4);
  EXPECT_FALSE(read_task(with(slurm_task(), {{"SLURM_STEP_NUM_TASKS", "6"}}))) << "tasks are ranks";
  EXPECT_FALSE(read_task(with(slurm_task(), {{"RANK", "0"}}))) << "a rank that such a launcher has started";
  EXPECT_FALSE(read_task({{"SLURM_JOB_ID", "1"}})) << "a batch script";
}

// The variables of Kubeflow's TrainJob; PyTorchJob adds RANK and WORLD_SIZE, which count pods.
Variables kubeflow() {
  return {{"PET_NNODES", "2"},
          {"PET_NODE_RANK", "1"},
          {"PET_NPROC_PER_NODE", "4"},
          {"PET_MASTER_ADDR", "job-node-0-0.job"},
          {"PET_MASTER_PORT", "29500"}};
}

TEST(Environment, APodOfKubeflowIsALauncher) {
  const Variables torch_job =
      with(kubeflow(), {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-master-0"}});
  for (const Variables& variables : {kubeflow(), torch_job}) {
    const auto task = read_task(variables);
    ASSERT_TRUE(task);
    EXPECT_EQ(task->nodes, 2);
    EXPECT_EQ(task->node_rank, 1);
    EXPECT_EQ(task->ranks, 4);
    EXPECT_EQ(task->master.text(), "job-node-0-0.job:29500");
    EXPECT_FALSE(is_rank(getenv_of(variables)));
  }
  EXPECT_EQ(read_task(with(kubeflow(), {{"PET_NPROC_PER_NODE", "auto"}}))->ranks, 0);
  EXPECT_FALSE(read_task(with(torch_job, {{"LOCAL_RANK", "0"}}))) << "a rank of torchrun in such a pod";
  const auto elastic = read_task({{"PET_NNODES", "2:2"}, {"PET_RDZV_ENDPOINT", "job-worker-0:23456"}});
  EXPECT_EQ(elastic->node_rank, std::nullopt);
  EXPECT_EQ(elastic->master.text(), "job-worker-0:23456");
  const auto task_refusal = [](const Variables& variables) -> std::string {
    try {
      read_task(variables);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(task_refusal({{"PET_NNODES", "1:4"}}), has_all("PET_NNODES=\"1:4\"", "one number"));
  EXPECT_THAT(task_refusal(with(kubeflow(), {{"PET_NODE_RANK", "2"}})),
              has_all("PET_NODE_RANK=2 ", "0 .. 1"));
}

TEST(Environment, IncompleteSlurmAndOpenMpiAreRefused) {
  for (const auto& [name, value] : slurm()) {
    if (name == "SLURM_STEP_NUM_TASKS") continue;
    Variables variables = slurm();
    variables.erase(name);
    EXPECT_THAT(refusal(variables), has_all(name + " is not set", "unset SLURM_STEP_NUM_TASKS"));
  }
  EXPECT_THAT(refusal(with(slurm(), {{"SLURM_PROCID", "5"}})),
              has_all("SLURM_PROCID=5 ", "SLURM_STEP_NUM_TASKS=5", "0 .. 4"));
  EXPECT_THAT(refusal(with(slurm(), {{"SLURM_NODEID", "3"}})),
              has_all("SLURM_STEP_TASKS_PER_NODE=\"", "node 3"));
  EXPECT_THAT(refusal(with(open_mpi(), {{"MASTER_ADDR", ""}})), HasSubstr("mpirun -x MASTER_ADDR="));
  EXPECT_THAT(refusal(with(open_mpi(), {{"OMPI_COMM_WORLD_LOCAL_RANK", ""}})),
              has_all("OMPI_COMM_WORLD_LOCAL_RANK is not set", "unset OMPI_COMM_WORLD_SIZE"));
}

TEST(Environment, StoreAndSecretAreRead) {
  const RankInfo info = read(with(torchrun(), {{"STRETTO_STORE", "127.0.0.1:4711"},
                                               {"STRETTO_SECRET", "s3"},
                                               {"STRETTO_HEARTBEAT", "/proc/1/fd/3"},
                                               {"STRETTO_DEBUG", "collectives"}}));
  EXPECT_EQ(info.store->host, "127.0.0.1");
  EXPECT_EQ(info.store->port, 4711);
  EXPECT_EQ(info.secret, "s3");
  EXPECT_EQ(info.heartbeat, "/proc/1/fd/3");
  EXPECT_TRUE(info.compare_calls);
  EXPECT_FALSE(read(torchrun()).compare_calls);
}

TEST(Environment, SecretMayBeInAFile) {
  const TempFolder folder;
  const auto path = folder.path() / "secret";
  const auto variables =
      with(torchrun(), {{"STRETTO_STORE", "[::1]:80"}, {"STRETTO_SECRET_FILE", path.string()}});
  write_file_atomic(path, "from a file\n");
  EXPECT_THAT(refusal(variables),
              has_all("STRETTO_SECRET_FILE:", path.string() + " (mode 644)", "chmod 600 " + path.string()));
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_EQ(read(variables).secret, "from a file");
  EXPECT_EQ(read(variables).store->host, "::1");
  write_file_atomic(path, " \n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_THAT(refusal(variables), has_all("STRETTO_SECRET_FILE:", path.string(), "empty"));
  EXPECT_THAT(refusal(with(variables, {{"STRETTO_SECRET_FILE", "/no/such/file"}})),
              HasSubstr("environment: STRETTO_SECRET_FILE: cannot read /no/such/file"));
  EXPECT_THAT(refusal(with(variables, {{"STRETTO_SECRET_FILE", folder.path().string()}})),
              HasSubstr("STRETTO_SECRET_FILE: cannot read " + folder.path().string()));
}

TEST(Environment, IncompleteVariablesAreRefusedByName) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables variables = torchrun();
    variables.erase(name);
    EXPECT_THAT(refusal(variables), has_all(std::string(name) + " is not set", "unset "));
  }
  EXPECT_THAT(refusal({{"STRETTO_DEBUG", "colectives"}}),
              has_all("STRETTO_DEBUG=\"colectives\"", "possible: collectives"));
  EXPECT_THAT(refusal(with(torchrun(), {{"STRETTO_STORE", "127.0.0.1:1"}})),
              has_all("STRETTO_STORE", "STRETTO_SECRET ", "STRETTO_SECRET_FILE"));
  EXPECT_THAT(refusal({{"STRETTO_STORE", "127.0.0.1:1"}}),
              has_all("WORLD_SIZE is not set", "unset STRETTO_STORE"));
}

TEST(Environment, InvalidValuesAreRefusedByName) {
  EXPECT_THAT(refusal(with(torchrun(), {{"RANK", "one"}})), has_all("RANK=\"one\"", "whole number"));
  EXPECT_THAT(refusal(with(torchrun(), {{"RANK", "4"}})), has_all("RANK=4 ", "WORLD_SIZE=4", "0 .. 3"));
  EXPECT_THAT(refusal(with(torchrun(), {{"RANK", "-1"}})), HasSubstr("RANK=-1 "));
  EXPECT_THAT(refusal(with(torchrun(), {{"LOCAL_RANK", "2"}})),
              has_all("LOCAL_RANK=2 ", "LOCAL_WORLD_SIZE=2", "0 .. 1"));
  EXPECT_THAT(refusal(with(torchrun(), {{"LOCAL_WORLD_SIZE", "5"}})),
              has_all("LOCAL_WORLD_SIZE=5", "larger than WORLD_SIZE=4"));
  EXPECT_THAT(refusal(with(torchrun(), {{"WORLD_SIZE", "0"}})), has_all("WORLD_SIZE=0 ", "1 .. "));
  EXPECT_THAT(refusal(with(torchrun(), {{"MASTER_PORT", "70000"}})),
              has_all("MASTER_PORT=70000 ", "1 .. 65535"));
  for (const char* store : {"here", "127.0.0.1", "127.0.0.1:0", ":80", "::1:80", "h:99999"}) {
    EXPECT_THAT(refusal(with(torchrun(), {{"STRETTO_STORE", store}})),
                has_all("STRETTO_STORE", fmt::format("\"{}\"", store), "host:port"))
        << store;
  }
}

}  // namespace
}  // namespace stretto::cluster
