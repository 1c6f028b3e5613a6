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

// Reserves a run folder, its logs and checkpoints included, for one run at a time. The folder itself is locked, so that
// deleting files in it lets no second run in, and the file .lock in it, for file systems that do not lock folders.
// Processes that a holder starts hold the lock too, until the last of them has ended: ranks may outlive a launcher that
// was killed for a moment.
class RunLock {
 public:
  // Makes the folder. A process that was started under the lock, and finds `variable` in its environment,
  // takes it over. Otherwise .lock is removed with this object if no run has taken a step in the folder (it
  // holds no config.yaml), and then the folder too if it was made here and is empty. Throws ConfigError where
  // another run holds it, in whatever process, and does not release it within `patience`, as one that was
  // killed a moment ago does.
  explicit RunLock(const std::filesystem::path& run,
                   std::chrono::milliseconds patience = std::chrono::seconds(3));
  RunLock(RunLock&&) = default;
  RunLock& operator=(RunLock&&) = default;
  ~RunLock();

  // Nothing where a run holds the folder now, or where there is no folder.
  static std::optional<RunLock> try_take(const std::filesystem::path& run);

  // Whether there ever was a run in the folder: only then is there anything to lock.
  static bool is_run(const std::filesystem::path& folder);

  // What a process started under the lock must find in its environment to take it over.
  static constexpr const char* variable = "STRETTO_RUN_LOCK";
  std::string value() const { return std::to_string(folder_.get()); }

 private:
  RunLock(Fd folder, Fd file) : folder_(std::move(folder)), file_(std::move(file)) {}

  std::filesystem::path run_;
  Fd folder_, file_;
  std::unique_ptr<NewFolder> made_;  // by the process that has locked the folder itself
};

}  // namespace stretto::checkpoint_format
