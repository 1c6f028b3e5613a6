#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/cluster/socket.h"

namespace stretto::launch {

using Environment = std::map<std::string, std::string>;

// The properties of a job that all its ranks on this host share.
struct JobContext {
  int ranks = 1;       // on this host
  int first_rank = 0;  // the lowest of them
  int world_size = 1;  // ranks of the job
  int node_rank = 0;
  int nodes = 1;
  int gpus = 0;
  cluster::Endpoint master = {};  // where rank 0 may start torch's TCPStore
  cluster::Endpoint store = {};   // the rendezvous store of the launcher with node rank 0
  std::string secret = {};
  bool encrypt = false;  // connections between processes
  std::string run_id = "none";
  std::string heartbeat = {};  // the path of the launcher's FlightBoard
  int restart_count = 0;       // how often the ranks have been restarted
  int max_restarts = 0;
  int terminal = -1;  // for rank 0, a descriptor of the terminal on the launcher's standard error; -1: none
};

// The environment of this process.
Environment own_environment();

// `base` with the variables of `rank` and without variables of an outer launcher.
Environment rank_environment(Environment base, const JobContext& job, int rank, const std::string& log_file);

// Converts an environment to execve's format: NAME=value.
std::vector<std::string> as_list(const Environment& environment);

}  // namespace stretto::launch
