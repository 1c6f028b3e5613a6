#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "stretto/base/fd.h"
#include "stretto/base/new_folder.h"

namespace stretto::checkpoint_format {

// Reserves a run folder, with its logs and checkpoints, for one run at a time. Two locks are taken: the
// folder itself, so that deleting files in it does not release the lock, and the file .lock in it, for file
// systems that cannot lock folders. Child processes of a holder share the lock until the last of them has
// ended: ranks may briefly outlive a launcher that was killed.
class RunLock {
 public:
  // Creates the folder and locks it. A child process of a holder that finds `variable` in its environment
  // shares the lock of its parent instead. The destructor removes .lock if no run has taken a step in the
  // folder (it has no config.yaml), and then the folder, if this object created it and it is empty. Throws
  // ConfigError if another run, in any process, holds the lock and does not release it within `patience`,
  // which allows for a run that was killed a moment ago.
  explicit RunLock(const std::filesystem::path& run,
                   std::chrono::milliseconds patience = std::chrono::seconds(3));
  RunLock(RunLock&&) = default;
  RunLock& operator=(RunLock&&) = default;
  ~RunLock();

  // Returns nullopt if a run holds the folder, or if there is no folder.
  static std::optional<RunLock> try_take(const std::filesystem::path& run);

  // Whether the folder has ever been used by a run.
  static bool is_run(const std::filesystem::path& folder);

  // The environment variable by which a child process of a holder shares the lock.
  static constexpr const char* variable = "STRETTO_RUN_LOCK";
  std::string value() const { return std::to_string(folder_.get()); }

 private:
  RunLock(Fd folder, Fd file) : folder_(std::move(folder)), file_(std::move(file)) {}

  std::filesystem::path run_;
  Fd folder_, file_;
  std::unique_ptr<NewFolder> made_;  // set in the process that locked the folder
};

}  // namespace stretto::checkpoint_format
