#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "stretto/checkpoint/rank_file.h"
#include "stretto/checkpoint/shared_folder.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/comm/group.h"

namespace stretto::checkpoint {

struct WriterOptions {
  std::filesystem::path folder;  // of the checkpoints
  bool background = true;        // write in a thread, from a snapshot, while training continues
  bool wait_when_busy = true;    // a save waits for the previous one; false: it is skipped
  checkpoint_format::Retention retention = {};
  // The folder of a file for the snapshot (tensor/file_memory.h); "": it is in memory.
  std::filesystem::path snapshot_folder = {};
  std::chrono::milliseconds patience = SharedFolder::default_patience;  // SharedFolder's
  // Writes files of the model that are no tensors, such as the tokenizer's, into the folder of each
  // checkpoint. Called on rank 0 by the thread that writes. If it throws, the checkpoint has none of them.
  std::function<void(const std::filesystem::path& folder)> write_companions = {};
};

// Saves the state of a run: each rank writes its pieces to step-<N>.partial/; when all are on disk, rank 0
// adds the manifest and renames the folder, which commits it. Ranks on hosts without rank 0's folder write to
// a local one, from which the files are sent to rank 0 (transfer.h). All ranks are notified of a failure on
// any rank: it is logged, nothing is committed, and earlier checkpoints are kept.
class Writer {
 public:
  // Creates the folder and removes files of interrupted saves in it; if that fails, the next save tries
  // again. Ranks that do not share the folder send their files to rank 0's. Collective.
  Writer(Group& group, WriterOptions options);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();  // waits for the current save

  // Saves the state, which may change after the call. Returns false if the save was skipped. Collective, with
  // the same step on all ranks.
  bool save(const State& state, int64_t step, std::optional<checkpoint_format::Score> score = std::nullopt);

  // Waits until the last save is committed. Returns the reason if it failed, else "".
  std::string finish();

  int64_t last_step() const { return last_step_; }  // that save() was called for; -1 before

 private:
  struct Job;
  std::string prepare();
  void write(Job& job);
  void log_failure(int64_t step) const;
  std::string write_and_commit(Job& job);
  std::string collect(Job& job, const std::vector<std::string>& parts);
  std::string commit(Job& job, const std::vector<std::string>& parts);
  void remove_superseded(int64_t step);

  Group& group_;
  std::unique_ptr<Group> background_group_;  // used by the writing thread only
  WriterOptions options_;
  Tensor snapshot_;
  bool snapshot_in_file_ = false;
  std::thread thread_;
  std::atomic<bool> busy_ = false;
  std::optional<SharedFolder> shared_;  // unset until the folder exists
  std::string error_;                   // of the last save; read after joining the thread
  int64_t last_step_ = -1;
};

}  // namespace stretto::checkpoint
