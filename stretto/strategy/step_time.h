#pragma once

#include <string>

#include "stretto/strategy/memory.h"

namespace stretto {

// Rates of the hosts, in bytes per second.
struct HardwareRates {
  int cores = 1;            // per host
  double memory = 10e9;     // copied in memory by a host, all cores together
  double network = 1.25e9;  // sent by a host
};

// Seconds of one step.
struct StepForecast {
  double compute = 0;
  double memory = 0;   // optimizer and reductions within hosts, which memory bandwidth bounds
  double network = 0;  // messages between hosts
  double sent = 0;     // bytes that each host sends to others
  double total() const { return compute + memory + network; }
  std::string bound() const;  // the largest part: "compute", "memory" or "network"
};
// `compute`: seconds of forward and backward of a step on a rank with its own core. The parts are assumed not
// to overlap.
StepForecast forecast_step(const ModelSizes& sizes, const Sharding& row, Precision precision,
                           const JobShape& job, double compute, const HardwareRates& rates);

}  // namespace stretto
