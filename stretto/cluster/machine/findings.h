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

// Measurements of a rank, or the slowest of each over several ranks.
struct Measurements {
  double fp32_gflops = 0;  // of matmuls on one core
  double clock_ghz = 0;    // during the matmuls
  double copy_gb_per_s = 0;
};

// Findings for measurements far below the peak of the processor.
std::vector<Finding> findings(const Processor& processor, const Measurements& measured);

}  // namespace stretto::machine
