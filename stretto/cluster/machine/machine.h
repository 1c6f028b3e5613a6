#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/cluster/machine/processor.h"

namespace stretto::machine {

struct Interface {
  std::string name;
  std::string address;
};

// Properties of this machine that stretto's speed and start-up depend on. Sizes are bytes.
struct Machine {
  Processor processor;
  int cores = 0;                     // cores that this process may run on
  std::optional<double> core_quota;  // a container's limit in CPUs, if less than `cores`
  double memory = 0;                 // of the machine, or a container's limit
  double memory_available = 0;
  std::string huge_pages;  // transparent ones: "always", "madvise", "never"; empty if the kernel has none
  std::string governor;    // the CPU frequency governor; empty if unknown
  bool clock_follows_load = false;  // the driver raises the clock under load with any governor
  int64_t open_files = 0;           // limit per process; -1: none
  std::vector<Interface> interfaces;
  int gpus = 0;
};

// Reads the properties of this machine. `root` replaces "/" before proc, sys and dev.
Machine read_machine(const std::filesystem::path& root = "/");

}  // namespace stretto::machine
