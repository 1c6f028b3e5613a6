#pragma once

#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/strategy/compute_options.h"

namespace stretto {

// The options of Lite; names follow Lightning Fabric.
struct LiteOptions {
  int devices = 0;    // ranks on this host; 0: as many as the launcher started, else one per GPU, else one
  int num_nodes = 0;  // hosts; 0: as many as the launcher started, else one
  std::string accelerator = "auto";  // "auto" (GPUs where there are any), "cpu" or "cuda" ("gpu")
  std::string strategy = "auto";     // "auto" (ddp), or a name that `stretto strats` lists
  int dp_shard = 0;  // under hsdp: ranks that together hold one copy of the model; 0: the ranks of each host
  std::string precision = "fp32";  // "fp32" ("32-true"), "bf16" ("bf16-mixed") or "fp64" ("64-true")
  double bucket_mb = 25;           // MiB; gradients are reduced in buckets of this size as they become ready
  // Library of the matrix products of stretto::nn's layers on CPU: "auto" (the fastest, measured once per processor and
  // kept in the user's cache folder), "aten", "onednn", "mkl" or "stretto".
  std::string products = "auto";
};

namespace lite {

// Validated options, with Fabric's aliases resolved. check() throws ConfigError for unsupported values.
struct Settings : ComputeOptions {
  std::string device = {};
  int dp_shard = 0;
  double bucket_bytes = 0;
};
Settings check(const LiteOptions& options);

// Returns the rank of this process. It is set by a launcher (`stretto launch`, torchrun, srun, mpirun); throws
// ConfigError if the launcher started another number of ranks than `options` requests. Without a launcher and with
// several devices, the program is started again once per rank: then this function does not return but exits with the
// ranks' exit code. With num_nodes > 1 this happens on each host, and NODE_RANK, MASTER_ADDR, MASTER_PORT and
// STRETTO_SECRET_FILE are read (launch/hosts/host_options.h).
cluster::RankInfo start_or_join(const LiteOptions& options);

// Process-wide state of a Lite. At most one exists at a time: a second throws ConfigError. From the first one on, an
// uncaught exception ends the process with its message and exit code instead of abort().
class ProcessHook {
 public:
  ProcessHook();
  ~ProcessHook();
  ProcessHook(const ProcessHook&) = delete;
  ProcessHook& operator=(const ProcessHook&) = delete;
};

}  // namespace lite
}  // namespace stretto
