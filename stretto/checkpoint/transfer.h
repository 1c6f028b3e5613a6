#pragma once

#include <filesystem>
#include <string>

#include "stretto/checkpoint/shared_folder.h"
#include "stretto/comm/group.h"

// Checkpoints between hosts that have no folder in common: rank 0's host has them all.
namespace stretto::checkpoint {

// A folder that only this rank uses, for its part of a checkpoint in rank 0's folder.
// checkpoint_format::remove_partial() removes it.
std::filesystem::path separate_folder(const std::filesystem::path& folder, int64_t step, int rank);

// Sends `file` of each rank that does not see rank 0's folder to rank 0, which writes it into `folder` under
// its name. Returns on rank 0 the reason if one of them could not be read or written, else "". Collective:
// the others wait for each file.
std::string collect_files(Group& group, const SharedFolder& shared, const std::filesystem::path& file,
                          const std::filesystem::path& folder);

// During its lifetime, a checkpoint of rank 0 at a path that this rank can read: its own path, or a copy on
// this rank's host.
class ReadableCheckpoint {
 public:
  // `scratch`: the folder for copies, which is created on hosts that need one. Collective. Throws IoError if
  // a host has no copy.
  ReadableCheckpoint(Group& group, const std::filesystem::path& checkpoint,
                     const std::filesystem::path& scratch);
  ~ReadableCheckpoint();  // removes the copy. Collective, because the ranks of a host read the same one
  ReadableCheckpoint(const ReadableCheckpoint&) = delete;
  ReadableCheckpoint& operator=(const ReadableCheckpoint&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  Group& group_;
  std::filesystem::path path_;
  bool copied_ = false;       // by any rank
  bool copied_here_ = false;  // this rank made the copy
};

}  // namespace stretto::checkpoint
