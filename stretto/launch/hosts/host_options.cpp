#include "stretto/launch/hosts/host_options.h"

#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/process.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/environment.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/cluster/secret.h"

namespace stretto::launch {
namespace {

constexpr int standard_port = 29500;  // torchrun's

int number_of(const char* name, long long low, long long high) {
  const auto text = cluster::process_environment(name).value_or("");
  const auto number = parse_int(text);
  if (!number || *number < low || *number > high)
    throw ConfigError("environment: {}=\"{}\" is not a number from {} to {}", name, text, low, high);
  return static_cast<int>(*number);
}

bool is_set(const char* name) { return !cluster::process_environment(name).value_or("").empty(); }

// The address by which the second host of the list reaches this one. Only ssh may be able to resolve its
// name.
std::string master_of(const std::vector<ListedHost>& list) {
  if (list.size() == 1) return list[0].address();
  try {
    return cluster::own_address({list[1].address(), standard_port});
  } catch (const DistributedError&) {
    return list[0].address();
  }
}

void complete_from_list(HostOptions& options) {
  const ListedHost& first = options.list.front();
  const auto count = static_cast<int>(options.list.size());
  if (options.nodes != 1 && options.nodes != count)
    throw ConfigError("--nodes {}: the list has {}; remove --nodes, or list that many", options.nodes,
                      counted(count, "host"));
  if (options.node_rank)
    throw ConfigError(
        "--node-rank {}: with --hosts or --hostfile this host is number 0 and the others are numbered in their order; remove it",
        *options.node_rank);
  if (!is_this_host(first.address())) {
    throw ConfigError(
        "--hosts: the first host, {}, is not this one ({}); start the command there, or list this host first",
        first.name, host_name());
  }
  options.nodes = count;
  options.node_rank = 0;
  if (options.master.host.empty())
    options.master.host = cluster::process_environment("MASTER_ADDR").value_or("");
  if (options.master.host.empty()) options.master.host = master_of(options.list);
  if (options.master.port == 0 && is_set("MASTER_PORT"))
    options.master.port = number_of("MASTER_PORT", 1, 65535);
  if (options.secret.empty()) options.secret = cluster::read_secret();
  if (options.secret.empty()) options.secret = cluster::make_secret();
}

}  // namespace

std::vector<std::string> HostOptions::hosts_of_ranks(int own_ranks) const {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& host, int ranks) {
    hosts.insert(hosts.end(), static_cast<size_t>(ranks), host);
  };
  for (const ListedHost& host : list) add(host.name, host.ranks > 0 ? host.ranks : own_ranks);
  for (int node = 0; list.empty() && node < nodes; ++node) add(fmt::format("host {}", node), own_ranks);
  return hosts;
}

void complete_from_environment(HostOptions& options) {
  const bool asked = options.encrypt;
  options.encrypt |= cluster::wants_encryption();
  const bool one_host = options.list.empty() ? options.nodes == 1 : options.list.size() == 1;
  if (asked && one_host)
    log::warning("--encrypt has no effect: the job has one host, whose ranks share memory");
  if (!options.list.empty()) return complete_from_list(options);
  if (options.nodes == 1) {
    if (!options.node_rank || *options.node_rank == 0) return;
    throw ConfigError("--node-rank {}: the job has one host; pass their number, as in --nodes 2",
                      *options.node_rank);
  }
  for (const char* name : {"NODE_RANK", "JOB_COMPLETION_INDEX"}) {
    if (!options.node_rank && is_set(name)) options.node_rank = number_of(name, 0, options.nodes - 1);
  }
  if (options.node_rank && *options.node_rank >= options.nodes) {
    throw ConfigError("--node-rank {}: with --nodes {} it must be in 0 .. {}", *options.node_rank,
                      options.nodes, options.nodes - 1);
  }
  if (options.master.host.empty())
    options.master.host = cluster::process_environment("MASTER_ADDR").value_or("");
  if (options.master.host.empty()) {
    throw ConfigError(
        "--nodes {}: --master-addr is missing: the name or address of the host with node rank 0, the same on all hosts, as in --nodes {} --node-rank 0 --master-addr 10.0.0.1 --master-port {}",
        options.nodes, options.nodes, standard_port);
  }
  if (options.master.port == 0)
    options.master.port = is_set("MASTER_PORT") ? number_of("MASTER_PORT", 1, 65535) : standard_port;
  if (options.secret.empty()) options.secret = cluster::read_secret();
  if (options.encrypt && options.secret.empty()) {
    throw ConfigError(
        "{}: its key is derived from the job's secret, and there is none; set STRETTO_SECRET or STRETTO_SECRET_FILE to the same value on all hosts",
        asked ? "--encrypt" : "environment: STRETTO_ENCRYPT");
  }
}

}  // namespace stretto::launch
