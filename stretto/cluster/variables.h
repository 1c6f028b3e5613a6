#pragma once

#include <optional>
#include <span>
#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/cluster/managers.h"

namespace stretto::cluster {

inline constexpr long long max_world_size = 1 << 20;

// The environment variables of a launcher. `identity`: those that identify it as the one that started the
// process.
class Variables {
 public:
  Variables(const Getenv& getenv, std::span<const char* const> identity)
      : getenv_(getenv), identity_(identity) {}

  std::optional<std::string> find(const char* name) const;  // an empty value counts as not set
  std::string need(const char* name) const;                 // throws ConfigError if it is not set
  // Throws ConfigError unless `text`, the value of `name`, is a number in low .. high.
  int number(const char* name, const std::string& text, long long low, long long high) const;
  int need_number(const char* name, long long low, long long high) const {
    return number(name, need(name), low, high);
  }
  int number_or_zero(const char* name, long long high) const;
  // Throws ConfigError unless value < bound.
  void check_below(const char* name, int value, const char* bound_name, int bound) const;

  const char* first_set() const;  // the first of the identity that is set; null: none

 private:
  const Getenv& getenv_;
  std::span<const char* const> identity_;
};

// Reads the variables that srun sets for the tasks of a step; nullopt if not started by srun, or with a
// single task.
std::optional<RankInfo> read_slurm(const Getenv& getenv);

// Reads the variables that srun sets for the one task per node that it starts; nullopt otherwise.
std::optional<HostTask> read_slurm_task(const Getenv& getenv);

// Reads the variables that Kubeflow sets in each pod of a job: torchrun's options; nullopt otherwise.
std::optional<HostTask> read_kubeflow_task(const Getenv& getenv);

// A port that is the same for all processes of `job` and most likely another for other jobs.
int port_of_job(const std::string& job);

// Reads the variables that mpirun sets for several processes: Open MPI's, or Hydra, which is MPICH's,
// MVAPICH's and Intel MPI's; nullopt otherwise.
std::optional<RankInfo> read_mpirun(const Getenv& getenv);

// The first host of a Slurm host list: node07 for "node[07-12,20],login".
std::string first_host(const std::string& list);

// The number of tasks on node number `node` in Slurm's notation: "2(x3),1" means 2, 2, 2 and 1. Throws
// ConfigError.
int tasks_of_node(const std::string& list, int node);

}  // namespace stretto::cluster
