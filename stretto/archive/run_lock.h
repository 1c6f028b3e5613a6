#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "stretto/base/fd.h"

namespace stretto::archive {

// Holds a run folder, its logs and checkpoints included, for one run at a time: a lock on the file .lock in it. The
// processes that a holder starts hold it too, until the last of them has ended in whatever way: of a launcher that was
// killed the ranks may live a moment longer.
class RunLock {
 public:
  // Makes the folder. A process that was started under the lock, and finds `variable` in its environment, takes it over.
  // Throws ConfigError where another run, of any process that sees the file system, holds it and does not leave within
  // seconds, as one that was killed a moment ago does.
  explicit RunLock(const std::filesystem::path& run);

  // Nothing where a run holds the folder now. REQUIRES: the folder is there.
  static std::optional<RunLock> try_take(const std::filesystem::path& run);

  // Whether there ever was a run: only then is there anything to hold.
  static bool is_run(const std::filesystem::path& folder);

  // What processes that are started under the lock have to find in their environment to take it over.
  static constexpr const char* variable = "STRETTO_RUN_LOCK";
  std::string value() const { return std::to_string(file_.get()); }

 private:
  explicit RunLock(Fd file) : file_(std::move(file)) {}

  Fd file_;
};

}  // namespace stretto::archive
