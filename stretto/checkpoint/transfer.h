#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "stretto/checkpoint/shared_folder.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/comm/group.h"
#include "stretto/tensor/state.h"

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
// this rank's host, which has the manifest and those pieces of the tensors that the host's ranks read.
class ReadableCheckpoint {
 public:
  // `scratch`: the folder for copies, which is created on hosts that need one. `patience`: SharedFolder's.
  // Collective. Throws IoError if a host cannot have a copy, DataError for an invalid manifest.
  ReadableCheckpoint(Group& group, const std::filesystem::path& checkpoint,
                     const std::filesystem::path& scratch, std::chrono::milliseconds patience);
  ~ReadableCheckpoint();  // removes the copy. Collective, because the ranks of a host read the same one
  ReadableCheckpoint(const ReadableCheckpoint&) = delete;
  ReadableCheckpoint& operator=(const ReadableCheckpoint&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const checkpoint_format::Manifest& manifest() const { return manifest_; }

  // Sends each host what load() with its ranks' `state` reads and it has no access to. Collective. Throws
  // IoError if a host has not received it.
  void fetch(const State& state);

 private:
  std::vector<std::string> wanted_by_receivers(const State& state) const;
  void require_success(const std::string& failure) const;

  Group& group_;
  const std::filesystem::path checkpoint_;
  const SharedFolder shared_;
  std::filesystem::path path_;
  checkpoint_format::Manifest manifest_;
  std::vector<const checkpoint_format::StoredPiece*> pieces_;  // by file and position in it
  bool copied_here_ = false;                                   // this rank makes the copy
};

}  // namespace stretto::checkpoint
