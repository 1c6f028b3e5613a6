#pragma once

#include <string>

#include "stretto/cluster/environment.h"

namespace stretto::cluster {

// How the ranks of a job reach their rendezvous store.
enum class Rendezvous {
  launcher_store,  // the store of `stretto launch`, authenticated by the job's secret
  local_socket,    // rank 0's store on a Unix socket of this user; all ranks are on one host
  secret,          // rank 0's store on MASTER_ADDR, authenticated by STRETTO_SECRET
  open,            // rank 0's store without a secret: anyone who can reach the port may read and write
  agent_secret,    // rank 0's store, by STRETTO_SECRET; torchrun's TCPStore only publishes its address
  agent_open       // torchrun's TCPStore, which has no authentication
};
Rendezvous rendezvous_of(const RankInfo& info);

// A warning for the job's log if unauthenticated processes of other hosts or users can reach the store;
// else "".
std::string exposure(Rendezvous rendezvous, const RankInfo& info);

// The address on which rank 0 listens and to which the other ranks connect. REQUIRES: local_socket, secret or
// open.
//
// The name of a local socket consists of the user, MASTER_ADDR, MASTER_PORT and the restart count, which
// differ between concurrent jobs. Otherwise rank 0 binds to the address by which its host reaches
// MASTER_ADDR, and logs a warning if that is not MASTER_ADDR itself; a name that resolves to 127.x on this
// host is replaced by that address. Throws DistributedError if MASTER_ADDR cannot be resolved.
Endpoint listening_endpoint(Rendezvous rendezvous, const RankInfo& info);
Endpoint store_endpoint(Rendezvous rendezvous, const RankInfo& info);

// The secret that client and server use; a public constant if they need none.
std::string store_secret(Rendezvous rendezvous, const RankInfo& info);

// Signs an address with the job's secret; verify_endpoint() returns the address, and throws DistributedError
// if the signature is wrong. `life` identifies this start of the job.
std::string sign_endpoint(const Endpoint& endpoint, const std::string& secret, const std::string& life);
Endpoint verify_endpoint(const std::string& published, const std::string& secret, const std::string& life);

}  // namespace stretto::cluster
