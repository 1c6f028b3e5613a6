#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "stretto/comm/group.h"

namespace stretto::checkpoint {

// The ranks that see what rank 0 writes into a folder: hosts may share a file system, or each have a folder
// of the same name.
class SharedFolder {
 public:
  static constexpr std::chrono::milliseconds default_patience = std::chrono::seconds(5);

  // Rank 0 creates an entry with a random name, and the others look for it: once on a file system of their
  // host, for up to `patience` on other file systems, because network file systems cache lookups. The entry
  // is removed. If rank 0 cannot create an entry, all ranks are assumed to see the folder: a save then
  // reports the reason. Collective. REQUIRES: the folder exists on rank 0.
  SharedFolder(Group& group, const std::filesystem::path& folder,
               std::chrono::milliseconds patience = default_patience);

  bool by_all() const { return ranks_without_access().empty(); }
  bool sees(int rank) const { return receiver_of_[static_cast<size_t>(rank)] < 0; }

  // The ranks that do not see it.
  std::vector<int> ranks_without_access() const;

  // The first rank that shares the folder of `rank`, which does not see rank 0's folder. Files for all of
  // them are sent to it.
  int receiver_of(int rank) const { return receiver_of_[static_cast<size_t>(rank)]; }

  // "/data/run on node-1", as `rank` sees it.
  const std::string& place(int rank) const { return places_[static_cast<size_t>(rank)]; }

 private:
  std::vector<std::string> places_;
  std::vector<int> receiver_of_;  // by rank; -1: it sees the folder
};

}  // namespace stretto::checkpoint
