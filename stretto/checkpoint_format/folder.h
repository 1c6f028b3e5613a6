#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/checkpoint_format/manifest.h"

namespace stretto::checkpoint_format {

// A folder of checkpoints: step-00000500/ and so on, each complete, and step-00000600.partial/ while one is
// written.

// A committed checkpoint; verify() checks that it is undamaged.
struct Checkpoint {
  int64_t step = 0;
  std::filesystem::path path;
};

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, int64_t step);
std::filesystem::path partial_path(const std::filesystem::path& folder, int64_t step);

// The folder's checkpoints, oldest first; empty if there is no folder. The list determines the newest
// checkpoint: there is no pointer file that could be out of date.
std::vector<Checkpoint> list_checkpoints(const std::filesystem::path& folder);

// The manifest of a checkpoint's folder, whose name must be that of its step if it names one. Throws
// DataError or IoError.
Manifest read_manifest(const std::filesystem::path& checkpoint);

// Reads every byte of a checkpoint and compares it with its checksum. Throws DataError naming file and
// tensor. `on_read` is called with the size of each part of a file after it was verified.
void verify(
    const std::filesystem::path& checkpoint,
    const std::function<void(int64_t bytes)>& on_read = [](int64_t) {});

// The newest checkpoint that verify() accepts; logs a warning for each newer one. Returns nullopt if the
// folder has no checkpoints; throws DataError if all are damaged.
std::optional<Checkpoint> newest_good(const std::filesystem::path& folder);

// The checkpoints that are kept when a new one has been committed.
struct Retention {
  int64_t last = 0;         // the number of newest checkpoints to keep; 0: all
  int64_t best = 0;         // the number of checkpoints with the best scores to keep as well
  int64_t every_steps = 0;  // also keep checkpoints at multiples of this number of steps; 0: none
};

// The checkpoints of a list (oldest first) that `retention` does not keep. The newest is always kept.
std::vector<Checkpoint> superseded(const std::vector<Checkpoint>& checkpoints, const Retention& retention);

void remove(const Checkpoint& checkpoint);

// The folders that interrupted saves and removals have left.
std::vector<std::filesystem::path> list_partial(const std::filesystem::path& folder);
void remove_partial(const std::filesystem::path& folder);

}  // namespace stretto::checkpoint_format
