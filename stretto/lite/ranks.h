#pragma once

#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/strategy/topology.h"

namespace stretto {

struct LiteOptions;

namespace lite {

// Validated options, with Fabric's aliases resolved. check() throws ConfigError for unsupported values.
struct Settings : ComputeOptions {
  std::string device = {};
  std::optional<int64_t> dp_shard = std::nullopt;
  int tp = 1;
  bool sequence_parallel = false;
  double bucket_bytes = 0;
};
Settings check(const LiteOptions& options);

// The request for resolve(). Its batch is not used: loaders and losses define the batch of a step.
TopologyRequest topology_request(const Settings& settings);

// Returns the rank of this process. It is set by a launcher (`stretto launch`, torchrun, srun, mpirun);
// throws ConfigError if the launcher started another number of ranks than `options` requests. Without a
// launcher and with several devices, the program is started again once per rank: then this function does not
// return but exits with the ranks' exit code. With num_nodes > 1 this happens on each host, and NODE_RANK,
// MASTER_ADDR, MASTER_PORT and STRETTO_SECRET_FILE are read (launch/hosts/host_options.h).
cluster::RankInfo start_or_join(const LiteOptions& options);

// Process-wide state of a Lite. At most one exists at a time: a second throws ConfigError. From the first one
// on, an uncaught exception ends the process with its message and exit code instead of abort().
class ProcessHook {
 public:
  ProcessHook();
  ~ProcessHook();
  ProcessHook(const ProcessHook&) = delete;
  ProcessHook& operator=(const ProcessHook&) = delete;
};

}  // namespace lite
}  // namespace stretto
