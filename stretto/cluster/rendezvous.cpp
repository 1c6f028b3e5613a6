#include "stretto/cluster/rendezvous.h"

#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/cluster/secret.h"

namespace stretto::cluster {
namespace {

std::string endpoint_proof(const std::string& endpoint, const std::string& secret, const std::string& life) {
  return to_hex(prove(secret, "stretto store address\n" + life + "\n" + endpoint));
}

}  // namespace

Rendezvous rendezvous_of(const RankInfo& info) {
  if (info.store) return Rendezvous::launcher_store;
  if (info.local_world_size == info.world_size) return Rendezvous::local_socket;
  if (info.agent_store) return info.secret.empty() ? Rendezvous::agent_open : Rendezvous::agent_secret;
  return info.secret.empty() ? Rendezvous::open : Rendezvous::secret;
}

std::string exposure(Rendezvous rendezvous, const RankInfo& info) {
  const auto warn = [&](std::string_view store) {
    return fmt::format(
        "the rendezvous store at {} ({}) has no authentication: anyone who can connect to it can stop this job or change its results; set STRETTO_SECRET or STRETTO_SECRET_FILE to the same value for all ranks, or let only the job's hosts reach that port",
        Endpoint{info.master_addr, info.master_port}.text(), store);
  };
  if (rendezvous == Rendezvous::open) return warn("of rank 0");
  if (rendezvous == Rendezvous::agent_open) return warn("torchrun's TCPStore, on all interfaces of its host");
  return "";
}

Endpoint store_endpoint(Rendezvous rendezvous, const RankInfo& info) {
  if (rendezvous != Rendezvous::local_socket) {
    const Endpoint master = {info.master_addr, info.master_port};
    return names_this_host_only_here(master) ? Endpoint{own_address(master), info.master_port} : master;
  }
  const std::string job = fmt::format("{} {} {}", info.master_addr, info.master_port, info.restart_count);
  return {fmt::format("@stretto-{}-{}-{:016x}", ::geteuid(), info.master_port, hash64(job)), 0};
}

Endpoint listening_endpoint(Rendezvous rendezvous, const RankInfo& info) {
  const Endpoint master = store_endpoint(rendezvous, info);
  if (rendezvous == Rendezvous::local_socket) return master;
  const Endpoint here = {own_address(master), info.master_port};
  if (!resolves_to(master, here.host)) {
    log::warning(
        "environment: MASTER_ADDR={} is not an address of the host of rank 0 that others can reach; the rendezvous store listens on {}",
        info.master_addr, here.text());
  }
  return here;
}

std::string store_secret(Rendezvous rendezvous, const RankInfo& info) {
  const bool needs_none = rendezvous == Rendezvous::local_socket || rendezvous == Rendezvous::open;
  return needs_none ? "no secret" : info.secret;
}

std::string sign_endpoint(const Endpoint& endpoint, const std::string& secret, const std::string& life) {
  return endpoint.text() + " " + endpoint_proof(endpoint.text(), secret, life);
}

Endpoint verify_endpoint(const std::string& published, const std::string& secret, const std::string& life) {
  const std::string endpoint = published.substr(0, published.find(' '));
  if (!equal_in_constant_time(published, endpoint + " " + endpoint_proof(endpoint, secret, life))) {
    throw DistributedError(
        "the address of rank 0's rendezvous store was published with another secret than this rank's; set STRETTO_SECRET or STRETTO_SECRET_FILE to the same value for all ranks");
  }
  return parse_endpoint(endpoint, "the published address of the rendezvous store");
}

}  // namespace stretto::cluster
