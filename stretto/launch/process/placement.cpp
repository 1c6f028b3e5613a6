#include "stretto/launch/process/placement.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <sched.h>

#include "stretto/base/strings.h"

namespace stretto::launch {

int count_gpus(const std::optional<std::string>& visible, const std::filesystem::path& device_folder) {
  std::error_code ignored;
  int devices = 0;
  for (const auto& entry : std::filesystem::directory_iterator(device_folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvidia") && parse_int(std::string_view(name).substr(6)).value_or(-1) >= 0)
      ++devices;
  }
  if (devices == 0 || !visible) return devices;
  // CUDA reads indices or identifiers ("GPU-...", "MIG-..."), up to the first invalid one.
  int seen = 0;
  for (const std::string_view item : split(*visible, ',')) {
    const std::string_view device = trim(item);
    const bool valid =
        parse_int(device).value_or(-1) >= 0 || device.starts_with("GPU-") || device.starts_with("MIG-");
    if (!valid) break;
    ++seen;
  }
  return seen;
}

std::vector<int> available_cores() {
  std::array<cpu_set_t, 16> set{};  // 16,384 cores: the kernel refuses a mask smaller than its own
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, set.data()) != 0) return cores;
  for (size_t core = 0; core < sizeof set * 8; ++core) {
    if (CPU_ISSET_S(core, sizeof set, set.data())) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

std::vector<std::vector<int>> assign_cores(const std::vector<int>& available, int ranks, int threads) {
  const auto share = static_cast<size_t>(threads);
  if (static_cast<size_t>(ranks) * share > available.size()) return {};
  std::vector<std::vector<int>> cores;
  for (auto first = available.begin(); cores.size() < static_cast<size_t>(ranks); first += threads) {
    cores.emplace_back(first, first + threads);
  }
  return cores;
}

}  // namespace stretto::launch
