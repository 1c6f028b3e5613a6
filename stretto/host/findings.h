#pragma once

#include <string>
#include <vector>

#include "stretto/host/machine.h"

namespace stretto::host {

// Something that holds training back: what it is and does, and the command or setting that mends it.
struct Finding {
  std::string what;
  std::string mend;
};

// What a look at the machine already tells. Empty: nothing is amiss.
std::vector<Finding> findings(const Machine& machine);

// A rank's own measurements, the slowest rank's of each.
struct Measurements {
  double fp32_gflops = 0;  // of matrix products on one core
  double clock_ghz = 0;    // meanwhile
  double copy_gb_per_s = 0;
};

// What the measurements tell against what the processor can do.
std::vector<Finding> findings(const Processor& processor, const Measurements& measured);

}  // namespace stretto::host
