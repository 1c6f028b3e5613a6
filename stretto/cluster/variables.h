#pragma once

#include <optional>
#include <span>
#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/cluster/managers.h"

namespace stretto::cluster {

inline constexpr long long max_world_size = 1 << 20;

// A launcher's variables. `identity`: those that show that this launcher started the process.
class Variables {
 public:
  Variables(const Getenv& getenv, std::span<const char* const> identity)
      : getenv_(getenv), identity_(identity) {}

  std::optional<std::string> find(const char* name) const;  // an empty one counts as not set
  std::string need(const char* name) const;                 // throws ConfigError where it is not set
  // Throws ConfigError unless `text`, the value of `name`, is a number in low .. high.
  int number(const char* name, const std::string& text, long long low, long long high) const;
  int need_number(const char* name, long long low, long long high) const {
    return number(name, need(name), low, high);
  }
  int number_or_zero(const char* name, long long high) const;
  // Throws ConfigError unless value < bound.
  void check_below(const char* name, int value, const char* bound_name, int bound) const;

  const char* first_set() const;  // of the identity; null: none is

 private:
  const Getenv& getenv_;
  std::span<const char* const> identity_;
};

// What srun sets for the tasks of a step, where there are several; nothing elsewhere.
std::optional<RankInfo> read_slurm(const Getenv& getenv);

// What srun sets for the one task that it starts on each node; nothing elsewhere.
std::optional<HostTask> read_slurm_task(const Getenv& getenv);

// What Kubeflow sets in each pod of a job: torchrun's options as variables; nothing elsewhere.
std::optional<HostTask> read_kubeflow_task(const Getenv& getenv);

// A port that is the same for all processes of `job` and most likely another for other jobs.
int port_of_job(const std::string& job);

// What Open MPI's mpirun sets for its processes, where there are several; nothing elsewhere.
std::optional<RankInfo> read_open_mpi(const Getenv& getenv);

// The first name of a list as Slurm writes it: "node[07-12,20],login" is node07.
std::string first_host(const std::string& list);

// Tasks on the node number `node` of a list as Slurm writes it: "2(x3),1" are 2, 2, 2 and 1. Throws ConfigError.
int tasks_of_node(const std::string& list, int node);

}  // namespace stretto::cluster
