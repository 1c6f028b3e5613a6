#include "stretto/cluster/machine/machine.h"

#include <algorithm>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/resource.h>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/machine/memory.h"

namespace stretto::machine {
namespace {

// "MemTotal:  24689 kB" -> bytes.
double kilobytes_of(std::string_view meminfo, std::string_view key) {
  for (const std::string_view line : split(meminfo, '\n')) {
    if (!line.starts_with(key)) continue;
    const auto words = split(trim(line.substr(key.size() + 1)), ' ');
    return static_cast<double>(parse_int(words.front()).value_or(0)) * 1024;
  }
  return 0;
}

// The word in brackets: "always [madvise] never" -> "madvise".
std::string chosen(const std::string& text) {
  const size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end < begin ? "" : text.substr(begin + 1, end - begin - 1);
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// cgroup v2's cpu.max: "200000 100000" means two CPUs, "max 100000" no limit.
std::optional<double> quota_of(const std::string& cpu_max) {
  const auto words = split(trim(cpu_max), ' ');
  if (words.size() != 2) return std::nullopt;
  const auto time = parse_double(words[0]), period = parse_double(words[1]);
  if (!time || !period || *period <= 0) return std::nullopt;
  return *time / *period;
}

std::vector<Interface> network_interfaces() {
  std::vector<Interface> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP))
      continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    found.push_back({one->ifa_name, text});
  }
  ::freeifaddrs(list);
  return found;
}

int count_nvidia(const std::filesystem::path& dev) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dev, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvidia") && parse_int(name.substr(6))) ++count;
  }
  return count;
}

}  // namespace

Machine read_machine(const std::filesystem::path& root) {
  Machine machine;
  machine.processor = parse_processor(read_if_readable(root / "proc/cpuinfo"));
  machine.cores = usable_cores();
  machine.core_quota = quota_of(read_if_readable(root / "sys/fs/cgroup/cpu.max"));
  if (machine.core_quota && *machine.core_quota >= machine.cores) machine.core_quota.reset();
  const std::string meminfo = read_if_readable(root / "proc/meminfo");
  machine.memory = kilobytes_of(meminfo, "MemTotal");
  machine.memory_available = kilobytes_of(meminfo, "MemAvailable");
  if (const auto limit = parse_double(trim(read_if_readable(root / "sys/fs/cgroup/memory.max")))) {
    machine.memory = std::min(machine.memory, *limit);
  }
  machine.memory_available = std::min(machine.memory_available, available_memory(root));
  machine.huge_pages = chosen(read_if_readable(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  machine.governor = trim(read_if_readable(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  const std::string driver(
      trim(read_if_readable(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")));
  machine.clock_follows_load = driver == "intel_pstate" || driver == "amd-pstate-epp";
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  machine.open_files = files.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(files.rlim_cur);
  machine.interfaces = network_interfaces();
  machine.gpus = count_nvidia(root / "dev");
  return machine;
}

}  // namespace stretto::machine
