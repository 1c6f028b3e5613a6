#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stretto/cluster/store_client.h"
#include "stretto/cluster/store_server.h"
#include "stretto/launch/hosts/host_options.h"

namespace stretto::launch {

// The connection to the launchers of the other hosts.
struct HostMeeting {
  HostPlan plan;
  std::shared_ptr<cluster::StoreServer> server = nullptr;  // on node 0
  std::shared_ptr<cluster::StoreClient> client = nullptr;
  std::string secret = {};  // the store's
  Fd master_port = Fd();    // on node 0: a bound socket that reserves the port
};

// Forms the job. Node 0 binds a store to the master's address, to which the other launchers connect. Each
// writes a card with its node rank, its number of ranks and its inputs. When all have joined, node 0 compares
// the cards and publishes a plan, or an error that names the hosts that differ and that is thrown on all
// hosts. `ranks`: the number of ranks of this host. `interrupted`: called twice a second; throws
// DistributedError if it returns true, and rethrows its exceptions. `listening`: called on node 0 once its
// store accepts connections.
//
// Throws ConfigError for errors that a restart would repeat: hosts that differ, a node rank that is taken, a
// wrong secret, a master address that is not that of node 0; DistributedError if hosts do not join within
// join_timeout or the master cannot be reached; IoError if the port is in use.
using OnListening = std::function<void(const cluster::Endpoint& store, const std::string& secret)>;
HostMeeting meet_hosts(const HostOptions& options, int ranks, const std::function<bool()>& interrupted,
                       const OnListening& listening = {});

}  // namespace stretto::launch
