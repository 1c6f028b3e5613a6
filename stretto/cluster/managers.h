#pragma once

#include <optional>
#include <string>

#include "stretto/cluster/environment.h"

namespace stretto::cluster {

// A process that a cluster's manager started once on each host of a job: a launcher, which starts the ranks
// of its host.
struct HostTask {
  std::string manager;                // "srun"
  int nodes = 1;                      // hosts of the job
  std::optional<int> node_rank = {};  // of this host; nullopt: any free one
  int ranks = 0;                      // ranks for this host's share of the hardware; 0: unknown
  Endpoint master = {};  // the host with node rank 0, and a port that other jobs most likely do not use
};

// Reads the variables that a manager sets for such a process: srun with one task per node
// (SLURM_STEP_NUM_NODES, SLURM_NODEID, SLURM_STEP_NODELIST; SLURM_GPUS_ON_NODE or SLURM_CPUS_PER_TASK);
// Kubeflow's PyTorchJob and TrainJob (PET_NNODES, PET_NODE_RANK, PET_NPROC_PER_NODE, PET_MASTER_ADDR,
// PET_MASTER_PORT, PET_RDZV_ENDPOINT). Returns nullopt in a process that is a rank or was started otherwise.
// Throws ConfigError, naming the variable, if they are incomplete.
std::optional<HostTask> read_host_task(const Getenv& getenv = process_environment);

// Whether this process is a rank of a job that torchrun, srun, mpirun or stretto's launcher started, or
// evaluates for one; otherwise it may start ranks itself.
bool is_rank(const Getenv& getenv = process_environment);

}  // namespace stretto::cluster
