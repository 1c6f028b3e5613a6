#pragma once

#include <filesystem>

namespace stretto::machine {

// Bytes that can still be allocated without swapping: of the machine, or of the control group (cgroup v1 or v2, and all
// groups around it) where that allows less. `root` stands for "/" in front of proc and sys.
double available_memory(const std::filesystem::path& root = "/");

}  // namespace stretto::machine
