#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

struct SlurmScript {
  std::vector<std::string> command = {};  // what srun starts on each node
  std::string name;                       // of the job
  int nodes = 1;
  int ranks = 0;  // per node; 0: not given
};

// A batch script for sbatch: one launcher per node; a new secret; on SIGTERM before the time limit the run is saved and the job is
// queued again.
std::string slurm_script(const SlurmScript& job);

}  // namespace stretto::cli
