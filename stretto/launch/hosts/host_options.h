#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/inputs.h"
#include "stretto/cluster/socket.h"
#include "stretto/launch/hosts/host_list.h"

namespace stretto::launch {

// A job on several hosts. Each host has a launcher with the same command line except for node_rank.
struct HostOptions {
  int nodes = 1;  // hosts of the job
  // 0 .. nodes - 1; nullopt: 0 on the host with the master's address, else any free number.
  std::optional<int> node_rank;
  cluster::Endpoint master = {};  // the address of the host with node rank 0, and the port of the job's store
  std::string secret = {};        // the job's secret; empty: anyone who can reach the port may join
  bool encrypt = false;           // connections between processes (cluster/tls.h), on several hosts
  std::string run_id = "none";    // TORCHELASTIC_RUN_ID
  std::chrono::milliseconds join_timeout{300'000};  // for all hosts to join
  std::chrono::milliseconds host_timeout{3'000};    // a host without a heartbeat for this long is lost
  std::vector<Input> inputs = {};                   // inputs that must be equal on all hosts

  // The hosts by node rank, this host first. Empty: a user or a cluster's manager starts the launcher of each
  // host. Otherwise this launcher starts the others by `rsh`, a command with ssh's arguments: a host and a
  // command ("": ssh).
  std::vector<ListedHost> list = {};
  std::string rsh = {};
  bool joined = false;  // another launcher started this one; this one ends at the end of its standard input

  // The name of each rank's host. Hosts without a number of ranks have as many as this one.
  std::vector<std::string> hosts_of_ranks(int own_ranks) const;
};

// Fills in missing options of a job on several hosts from NODE_RANK or JOB_COMPLETION_INDEX, MASTER_ADDR,
// MASTER_PORT (default 29500), STRETTO_SECRET or STRETTO_SECRET_FILE, STRETTO_ENCRYPT. With a list of hosts,
// uses the address of this host that the second one sees, any free port and a new secret. Throws ConfigError
// if the master's address is missing, a value is invalid, this host is not the first of the list, or there is
// no secret for `encrypt`.
void complete_from_environment(HostOptions& options);

// The plan of a job that its hosts have agreed on.
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
