#include "stretto/launch/hosts/host_options.h"

#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/environment.h"

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

}  // namespace

void complete_from_environment(HostOptions& options) {
  if (options.nodes == 1) {
    if (!options.node_rank || *options.node_rank == 0) return;
    throw ConfigError("--node-rank {}: the job has one host; pass their number, as in --nodes 2",
                      *options.node_rank);
  }
  if (!options.node_rank && is_set("NODE_RANK"))
    options.node_rank = number_of("NODE_RANK", 0, options.nodes - 1);
  if (options.node_rank && *options.node_rank >= options.nodes) {
    throw ConfigError("--node-rank {}: with --nodes {} it must lie in 0 .. {}", *options.node_rank,
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
}

}  // namespace stretto::launch
