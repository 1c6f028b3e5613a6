#pragma once

#include <string>
#include <vector>

#include "stretto/cluster/machine/machine.h"

namespace stretto::machine {

// A problem that slows training down or stops it, and the command or setting that fixes it.
struct Finding {
  std::string what;
  std::string fix;
};

// Problems of the machine's configuration. Empty: no problems found.
std::vector<Finding> findings(const Machine& machine);

// Measurements of a rank; of several ranks, the slowest of each.
struct Measurements {
  double fp32_gflops = 0;  // of matrix products on one core
  double clock_ghz = 0;    // during that
  double copy_gb_per_s = 0;
};

// Measurements far below what the processor can do.
std::vector<Finding> findings(const Processor& processor, const Measurements& measured);

}  // namespace stretto::machine
