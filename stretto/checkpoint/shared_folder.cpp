#include "stretto/checkpoint/shared_folder.h"

#include <array>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace stretto::checkpoint {
namespace {

// "/data/run on node-1"
std::string place(const std::filesystem::path& folder) {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code failed;
  const std::filesystem::path full = std::filesystem::absolute(folder, failed);
  return fmt::format("{} on {}", failed ? folder.string() : full.lexically_normal().string(), host.data());
}

// Network file systems cache that a name is not there until its folder is opened again.
void look_again(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::directory_iterator parent(folder.parent_path(), ignored), own(folder, ignored);
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

std::string why_not_shared(Group& group, const std::filesystem::path& folder,
                           std::chrono::milliseconds patience) {
  if (group.size() == 1) return "";
  std::string name;
  std::error_code failed;
  if (group.rank() == 0) {
    std::random_device random;
    name = fmt::format(".shared-{:08x}{:08x}", random(), random());
    if (!std::filesystem::create_directory(folder / name, failed)) name.clear();
  }
  name = group.broadcast_bytes(name, 0);
  if (name.empty()) return "";
  const bool found = group.rank() == 0 || appears(folder / name, patience);
  const auto places = group.all_gather_bytes((found ? "+" : "-") + place(folder));
  if (group.rank() == 0) std::filesystem::remove(folder / name, failed);
  for (size_t rank = 1; rank < places.size(); ++rank) {
    if (places[rank].front() == '+') continue;
    return fmt::format(
        "rank {} does not see what rank 0 writes into its folder: {} (rank {}) and {} (rank 0) are not the same, and no checkpoint would be complete. Set output to a folder in a file system that all hosts mount under the same path",
        rank, places[rank].substr(1), rank, places[0].substr(1));
  }
  return "";
}

}  // namespace stretto::checkpoint
