#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"
#include "stretto/launch/hosts/host_options.h"

namespace stretto::launch {

// How this launcher has met those of the other hosts.
struct HostMeeting {
  HostPlan plan;
  std::shared_ptr<cluster::StoreServer> server = nullptr;  // on node 0
  std::shared_ptr<cluster::StoreClient> client = nullptr;
  std::string secret = {};  // of the store
  Fd master_port = Fd();    // on node 0, bound so that no other process takes it
};

// Node 0 binds a store to the master's address; the other launchers connect to it. Each leaves a card with its node rank, its
// number of ranks and its inputs; node 0 compares them when all have come, and its verdict is everybody's: a plan, or an error,
// thrown on all hosts, which names the hosts that differ. `ranks`: of this host. `interrupted`: asked twice a second; the meeting
// ends with DistributedError where it returns true, and with what it throws. `listening`: called on node 0 when its store accepts
// connections.
//
// Throws ConfigError for what a restart would only repeat: hosts that differ, a node rank that is taken, a wrong secret, a master
// address that is not that of node 0; DistributedError where hosts do not come within join_timeout or the master cannot be
// reached; IoError where the port is in use.
using OnListening = std::function<void(const cluster::Endpoint& store, const std::string& secret)>;
HostMeeting meet_hosts(const HostOptions& options, int ranks, const std::function<bool()>& interrupted,
                       const OnListening& listening = {});

}  // namespace stretto::launch
