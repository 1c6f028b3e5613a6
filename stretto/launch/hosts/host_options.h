#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/inputs.h"
#include "stretto/cluster/socket.h"
#include "stretto/launch/hosts/host_list.h"

namespace stretto::launch {

// A job on several hosts: a launcher on each, the same command line but for node_rank.
struct HostOptions {
  int nodes = 1;  // hosts of the job
  std::optional<int>
      node_rank;  // 0 .. nodes - 1; not given: 0 on the host with the master's address, else any free one
  cluster::Endpoint master = {};  // the address of the host with node rank 0, and the port of the job's store
  std::string secret = {};        // the job's; empty: anyone who can reach the port may join
  std::string run_id = "none";    // TORCHELASTIC_RUN_ID
  std::chrono::milliseconds join_timeout{300'000};  // for all hosts to join
  std::chrono::milliseconds host_timeout{3'000};    // a host that is silent for this long is lost
  std::vector<Input> inputs = {};                   // what must be the same on all hosts

  // By node rank, this host first; empty: a user or a cluster's manager starts the launcher of each host. Else this launcher starts
  // the others, by `rsh`, a shell command as ssh's ("": ssh), which takes a host and a command.
  std::vector<ListedHost> list = {};
  std::string rsh = {};
  bool joined = false;  // another launcher started this one, and ends it by the end of its standard input

  // The name of each rank's host, if hosts that do not say otherwise have as many ranks as this one.
  std::vector<std::string> hosts_of_ranks(int own_ranks) const;
};

// Fills in what is not given, of a job on several hosts: NODE_RANK or JOB_COMPLETION_INDEX, MASTER_ADDR, MASTER_PORT (default 29500), STRETTO_SECRET or
// STRETTO_SECRET_FILE. With a list of hosts: the address of this host that the second one sees, any free port, a new secret. Throws
// ConfigError where the master's address is missing, a value cannot be, or this host is not the first of the list.
void complete_from_environment(HostOptions& options);

// What the hosts have agreed on.
struct HostPlan {
  struct Host {
    std::string name;
    int ranks = 1;
  };
  int node_rank = 0;
  std::vector<Host> hosts = {};   // by node rank
  cluster::Endpoint store = {};   // the job's rendezvous store
  cluster::Endpoint master = {};  // MASTER_ADDR and MASTER_PORT of the ranks

  int world_size() const;
  int first_rank(int node) const;
  std::string describe(int node) const;  // "node-7 (node rank 1, ranks 4 to 7)"
};

}  // namespace stretto::launch
