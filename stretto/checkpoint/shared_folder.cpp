#include "stretto/checkpoint/shared_folder.h"

#include <algorithm>
#include <array>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace stretto::checkpoint {
namespace {

// "/data/run on node-1"
std::string place_of(const std::filesystem::path& folder) {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code failed;
  const std::filesystem::path full = std::filesystem::absolute(folder, failed);
  return fmt::format("{} on {}", failed ? folder.string() : full.lexically_normal().string(), host.data());
}

// Network file systems cache the absence of a name until its folder is opened again.
void look_again(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::directory_iterator parent(folder.parent_path(), ignored), own(folder, ignored);
}

// Whether the folder, or its nearest existing parent, is on a local file system, which shows new entries at
// once. Network file systems, even if they are not mounted yet, are not local.
bool is_local(std::filesystem::path folder) {
  std::error_code failed;
  folder = std::filesystem::absolute(folder, failed);
  while (folder.has_relative_path() && !std::filesystem::exists(folder, failed))
    folder = folder.parent_path();
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) return false;
  constexpr std::array<int64_t, 6> local = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                            F2FS_SUPER_MAGIC, TMPFS_MAGIC,     OVERLAYFS_SUPER_MAGIC};
  return std::ranges::find(local, int64_t{system.f_type}) != local.end();
}

bool appears(const std::filesystem::path& entry, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::error_code ignored;
  while (!std::filesystem::exists(entry, ignored)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    look_again(entry.parent_path());
  }
  return true;
}

}  // namespace

SharedFolder::SharedFolder(Group& group, const std::filesystem::path& folder,
                           std::chrono::milliseconds patience) {
  const auto size = static_cast<size_t>(group.size());
  receiver_of_.assign(size, -1);
  places_ = group.all_gather_bytes(place_of(folder));
  if (size == 1) return;
  std::string name;
  std::error_code failed;
  if (group.rank() == 0) {
    std::random_device random;
    name = fmt::format(".shared-{:08x}{:08x}", random(), random());
    if (!std::filesystem::create_directory(folder / name, failed)) name.clear();
  }
  name = group.broadcast_bytes(name, 0);
  if (name.empty()) return;
  const bool found =
      group.rank() == 0 || appears(folder / name, is_local(folder) ? std::chrono::milliseconds(0) : patience);
  const auto seen =
      group.all_gather_bytes(found ? "" : group.host() + " " + places_[static_cast<size_t>(group.rank())]);
  if (group.rank() == 0) std::filesystem::remove(folder / name, failed);
  for (size_t rank = 0; rank < size; ++rank) {
    if (!seen[rank].empty())
      receiver_of_[rank] = static_cast<int>(std::ranges::find(seen, seen[rank]) - seen.begin());
  }
}

std::vector<int> SharedFolder::ranks_without_access() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < receiver_of_.size(); ++rank)
    if (receiver_of_[rank] >= 0) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

}  // namespace stretto::checkpoint
