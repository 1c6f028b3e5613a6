#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/host/processor.h"

namespace stretto::host {

struct Interface {
  std::string name;
  std::string address;
};

// What stretto's speed and start depend on. Sizes are bytes.
struct Machine {
  Processor processor;
  int cores = 0;  // that this process may run on
  std::optional<double>
      core_quota;     // cores' worth of time that a container allows, where it allows less than all
  double memory = 0;  // of the machine, or what a container allows
  double memory_available = 0;
  std::string huge_pages;  // transparent ones: "always", "madvise", "never"; empty where the kernel has none
  std::string governor;    // how the clock is governed; empty where that cannot be seen
  bool clock_follows_load = false;  // the processor's driver does so whatever the governor's name
  int64_t open_files = 0;           // a process may have; -1: any number
  std::vector<Interface> interfaces;
  int gpus = 0;
};

// Looks at this machine. `root` stands for "/" in front of proc, sys and dev.
Machine look_at_machine(const std::filesystem::path& root = "/");

}  // namespace stretto::host
