#pragma once

#include <filesystem>

namespace stretto::machine {

// Bytes that can still be allocated without swapping, limited by the machine and by the control group (cgroup
// v1 or v2) and its ancestors. `root` replaces "/" before proc and sys.
double available_memory(const std::filesystem::path& root = "/");

}  // namespace stretto::machine
