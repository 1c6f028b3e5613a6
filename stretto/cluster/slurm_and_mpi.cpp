#include <algorithm>
#include <array>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/variables.h"

namespace stretto::cluster {
namespace {

// Sets the address of rank 0's store: MASTER_ADDR and MASTER_PORT if the user has set them, else `host` and a
// port derived from `job`.
void set_master(const Variables& variables, const std::string& host, const std::string& job, RankInfo& info) {
  info.master_addr = variables.find("MASTER_ADDR").value_or(host);
  const auto port = variables.find("MASTER_PORT");
  info.master_port = port ? variables.number("MASTER_PORT", *port, 1, 65535) : port_of_job(job);
}

std::string slurm_job(const Variables& variables) {
  return variables.need("SLURM_JOB_ID") + "." + variables.need("SLURM_STEP_ID");
}

// One rank per GPU, else the number of the task's cores divided by the user's number of threads.
int slurm_ranks(const Variables& variables) {
  if (const int gpus = variables.number_or_zero("SLURM_GPUS_ON_NODE", max_world_size); gpus > 0) return gpus;
  const int cores = variables.number_or_zero("SLURM_CPUS_PER_TASK", max_world_size);
  const auto threads = parse_int(split(variables.find("OMP_NUM_THREADS").value_or("1"), ',').front());
  return cores / static_cast<int>(std::clamp<long long>(threads.value_or(1), 1, std::max(1, cores)));
}

// The variables that a kind of mpirun sets.
struct MpirunVariables {
  const char* identity;  // only this kind sets it
  const char *world_size, *rank, *local_world_size, *local_rank;
  std::vector<const char*> job;  // the first one that is set identifies the job
  const char* pass_master;       // how a user passes MASTER_ADDR
};

std::optional<RankInfo> read_mpirun(const Getenv& getenv, const MpirunVariables& names) {
  const std::array identity = {names.identity};
  const Variables variables(getenv, identity);
  if (variables.first_set() == nullptr) return std::nullopt;
  RankInfo info;
  info.world_size = variables.need_number(names.world_size, 1, max_world_size);
  if (info.world_size == 1) return std::nullopt;
  info.launched = true;
  info.rank = variables.need_number(names.rank, 0, max_world_size);
  info.local_world_size = variables.need_number(names.local_world_size, 1, max_world_size);
  info.local_rank = variables.need_number(names.local_rank, 0, max_world_size);
  info.group_rank = info.rank / info.local_world_size;
  variables.check_below(names.rank, info.rank, names.world_size, info.world_size);
  variables.check_below(names.local_rank, info.local_rank, names.local_world_size, info.local_world_size);
  if (info.local_world_size < info.world_size && !variables.find("MASTER_ADDR")) {
    throw ConfigError(
        "environment: MASTER_ADDR is not set, and mpirun does not set which host is the first; pass it: {}",
        names.pass_master);
  }
  std::string job;
  for (const char* name : names.job)
    if (job.empty()) job = variables.find(name).value_or("");
  set_master(variables, "127.0.0.1", job, info);
  return info;
}

}  // namespace

int port_of_job(const std::string& job) { return 15000 + static_cast<int>(hash64(job) % 15000); }

std::optional<HostTask> read_slurm_task(const Getenv& getenv) {
  constexpr const char* identity[] = {"SLURM_STEP_NUM_TASKS"};
  const Variables variables(getenv, identity);
  if (variables.first_set() == nullptr) return std::nullopt;
  HostTask task{.manager = "srun"};
  task.nodes = variables.need_number("SLURM_STEP_NUM_NODES", 1, max_world_size);
  if (variables.need_number("SLURM_STEP_NUM_TASKS", 1, max_world_size) != task.nodes) return std::nullopt;
  task.node_rank = variables.need_number("SLURM_NODEID", 0, max_world_size);
  variables.check_below("SLURM_NODEID", *task.node_rank, "SLURM_STEP_NUM_NODES", task.nodes);
  task.ranks = slurm_ranks(variables);
  task.master = {first_host(variables.need("SLURM_STEP_NODELIST")), port_of_job(slurm_job(variables))};
  return task;
}

std::optional<RankInfo> read_slurm(const Getenv& getenv) {
  constexpr const char* identity[] = {"SLURM_STEP_NUM_TASKS"};
  const Variables variables(getenv, identity);
  // srun sets these, a batch script does not have them. A single task is an ordinary program, not a rank.
  if (variables.first_set() == nullptr) return std::nullopt;
  RankInfo info;
  info.world_size = variables.need_number("SLURM_STEP_NUM_TASKS", 1, max_world_size);
  if (info.world_size == 1) return std::nullopt;
  info.launched = true;
  info.rank = variables.need_number("SLURM_PROCID", 0, max_world_size);
  info.local_rank = variables.need_number("SLURM_LOCALID", 0, max_world_size);
  info.group_rank = variables.need_number("SLURM_NODEID", 0, max_world_size);
  info.local_world_size = tasks_of_node(variables.need("SLURM_STEP_TASKS_PER_NODE"), info.group_rank);
  variables.check_below("SLURM_PROCID", info.rank, "SLURM_STEP_NUM_TASKS", info.world_size);
  variables.check_below("SLURM_LOCALID", info.local_rank, "SLURM_STEP_TASKS_PER_NODE", info.local_world_size);
  set_master(variables, first_host(variables.need("SLURM_STEP_NODELIST")), slurm_job(variables), info);
  return info;
}

std::optional<RankInfo> read_mpirun(const Getenv& getenv) {
  const auto open_mpi = read_mpirun(getenv, {.identity = "OMPI_COMM_WORLD_SIZE",
                                             .world_size = "OMPI_COMM_WORLD_SIZE",
                                             .rank = "OMPI_COMM_WORLD_RANK",
                                             .local_world_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
                                             .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                                             .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
                                             .pass_master = "mpirun -x MASTER_ADDR=<the first host> ..."});
  if (open_mpi) return open_mpi;
  // Hydra does not number its jobs.
  return read_mpirun(getenv, {.identity = "MPI_LOCALNRANKS",
                              .world_size = "PMI_SIZE",
                              .rank = "PMI_RANK",
                              .local_world_size = "MPI_LOCALNRANKS",
                              .local_rank = "MPI_LOCALRANKID",
                              .job = {},
                              .pass_master = "mpirun -genv MASTER_ADDR <the first host> ..."});
}

std::string first_host(const std::string& list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const size_t end = list.find(']', i);
    if (end == std::string::npos) break;
    const std::string range = list.substr(i + 1, end - i - 1);
    host += range.substr(0, range.find_first_of("-,"));
    i = end;
  }
  return host;
}

int tasks_of_node(const std::string& list, int node) {
  int nodes = 0;
  for (const std::string_view item : split(list, ',')) {
    const size_t times = item.find("(x");
    const auto tasks = parse_int(item.substr(0, times));
    const auto repeat = times == std::string_view::npos || item.back() != ')'
                            ? std::optional<long long>(1)
                            : parse_int(item.substr(times + 2, item.size() - times - 3));
    if (!tasks || !repeat || *tasks < 1 || *repeat < 1 || *tasks > max_world_size || *repeat > max_world_size)
      break;
    nodes += static_cast<int>(*repeat);
    if (node < nodes) return static_cast<int>(*tasks);
  }
  throw ConfigError("environment: SLURM_STEP_TASKS_PER_NODE=\"{}\" has no number of tasks for node {}", list,
                    node);
}

}  // namespace stretto::cluster
