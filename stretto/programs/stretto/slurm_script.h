#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

struct SlurmScript {
  std::vector<std::string> command = {};  // the command that srun starts on each node
  std::string name;                       // the name of the job
  int nodes = 1;
  int ranks = 0;  // per node; 0: not given
};

// Generates a batch script for sbatch: it creates a secret and starts one launcher per node; on SIGTERM
// before the time limit, the run is saved and the job is requeued.
std::string slurm_script(const SlurmScript& job);

}  // namespace stretto::cli
