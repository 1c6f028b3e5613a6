#include "stretto/cluster/machine/memory.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto::machine {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// The number in a line such as "inactive_file 4096" or "MemAvailable: 5 kB".
double entry(const std::string& lines, std::string_view name) {
  for (const std::string_view line : split(lines, '\n')) {
    if (!line.starts_with(name) || line.size() <= name.size()) continue;
    const std::string_view next = line.substr(name.size());
    if (next[0] != ' ' && next[0] != ':') continue;
    const auto words = split(trim(next.substr(1)), ' ');
    const double value = static_cast<double>(parse_int(words.front()).value_or(0));
    return words.size() > 1 && words[1] == "kB" ? value * 1024 : value;
  }
  return 0;
}

struct Names {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat: pages of files, which go when memory is needed
};
constexpr Names version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names version_2 = {"memory.max", "memory.current", "inactive_file"};

// The bytes that one control group still allows.
double left_in(const std::filesystem::path& group, const Names& names) {
  const auto limit = parse_double(trim(read_if_readable(group / names.limit)));  // "max": none
  if (!limit) return unlimited;
  const double used = parse_double(trim(read_if_readable(group / names.used))).value_or(0);
  const double reclaimable = entry(read_if_readable(group / "memory.stat"), names.reclaimable);
  return std::max(0.0, *limit - used + reclaimable);
}

// The bytes that the group `path` below `mount` and its ancestors still allow.
double left_up_from(const std::filesystem::path& mount, const std::filesystem::path& path,
                    const Names& names) {
  double left = left_in(mount, names);  // in a container, this is its own group
  std::filesystem::path group = mount;
  for (const auto& part : path.relative_path()) {
    group /= part;
    left = std::min(left, left_in(group, names));
  }
  return left;
}

}  // namespace

double available_memory(const std::filesystem::path& root) {
  double available = entry(read_if_readable(root / "proc/meminfo"), "MemAvailable");
  if (available == 0) available = unlimited;
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  available = std::min(available, left_in(mount, version_2));
  const std::string groups = read_if_readable(root / "proc/self/cgroup");
  for (const std::string_view line : split(groups, '\n')) {
    const auto parts = split(line, ':');  // "0::/path", "4:memory:/path"
    if (parts.size() < 3) continue;
    const std::filesystem::path path(parts[2]);
    if (parts[1].empty()) available = std::min(available, left_up_from(mount, path, version_2));
    if (parts[1] == "memory")
      available = std::min(available, left_up_from(mount / "memory", path, version_1));
  }
  return available;
}

}  // namespace stretto::machine
