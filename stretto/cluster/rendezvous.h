#pragma once

#include <string>

#include "stretto/cluster/environment.h"

namespace stretto::cluster {

// How the ranks of a job reach the store in which they find each other.
enum class Meeting {
  launcher_store,  // the store of `stretto launch`, by the job's secret
  local_socket,  // all ranks on one host: rank 0's store on a Unix socket that only this user's processes may use
  secret,        // rank 0's store on MASTER_ADDR, by STRETTO_SECRET
  open,          // the same without a secret: anyone who can reach the port may read and write
  agent_secret,  // rank 0's store, by STRETTO_SECRET; torchrun's TCPStore only publishes its address
  agent_open     // torchrun's TCPStore, which knows no secret
};
Meeting meeting_of(const RankInfo& info);

// One warning for the job's log where strangers can reach the store; else "".
std::string exposure(Meeting meeting, const RankInfo& info);

// Where rank 0 listens, and what the other ranks connect to. REQUIRES: local_socket, secret or open.
//
// The socket's name is made of the user and of MASTER_ADDR, MASTER_PORT and the restart count: jobs that run at the same
// time differ in these. For the others rank 0 binds to the one address of its host by which it reaches MASTER_ADDR, and
// logs a warning where that is not MASTER_ADDR itself; a name that means 127.x on this host stands for that address. Throws DistributedError where MASTER_ADDR cannot be resolved.
Endpoint listening_endpoint(Meeting meeting, const RankInfo& info);
Endpoint store_endpoint(Meeting meeting, const RankInfo& info);

// The secret that client and server use; a public constant where the meeting needs none.
std::string store_secret(Meeting meeting, const RankInfo& info);

// An address with the proof that somebody who knows the job's secret has published it, and its verification, which
// throws DistributedError. `life` is what tells this start of the job from others.
std::string sign_endpoint(const Endpoint& endpoint, const std::string& secret, const std::string& life);
Endpoint verify_endpoint(const std::string& published, const std::string& secret, const std::string& life);

}  // namespace stretto::cluster
