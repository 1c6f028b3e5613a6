#pragma once

#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/tensor/tensor.h"

namespace stretto {

// What a Lite program asks for; the names are Lightning Fabric's.
struct LiteOptions {
  int devices = 0;    // ranks on this host; 0: as many as the launcher started, else one a GPU, else one
  int num_nodes = 0;  // hosts; 0: as many as the launcher started, else one
  std::string accelerator = "auto";  // "auto" (GPUs where there are any), "cpu" or "cuda" ("gpu")
  std::string strategy = "auto";     // "ddp"; "auto" is the same
  std::string precision = "fp32";    // "fp32" ("32-true"), "bf16" ("bf16-mixed") or "fp64" ("64-true")
  double bucket_mb = 25;             // gradients are reduced in pieces of this size, as they become ready
};

namespace lite {

// The options as they are meant: Fabric's other names replaced, what cannot be honoured refused in words (ConfigError).
struct Settings {
  std::string device;
  std::string strategy = "ddp";  // a row of parallel/sharding.h
  Precision precision = Precision::fp32;
  double bucket_bytes = 0;
};
Settings check(const LiteOptions& options);

// Who this process is. A launcher (`stretto launch`, torchrun, srun, mpirun) has said so; ConfigError where it started
// other numbers of ranks than `options` asks for. A program that was started plainly and asks for several devices is run
// again, once a rank: then this does not return, but ends the process with the ranks' exit code.
cluster::RankInfo start_or_join(const LiteOptions& options);

// What a Lite means for its process. There is one at a time: another throws ConfigError. From the first on an exception that
// nobody catches ends the process with its message and exit code, in place of abort().
class ProcessHook {
 public:
  ProcessHook();
  ~ProcessHook();
  ProcessHook(const ProcessHook&) = delete;
  ProcessHook& operator=(const ProcessHook&) = delete;
};

}  // namespace lite
}  // namespace stretto
