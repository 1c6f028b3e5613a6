#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "stretto/checkpoint_format/folder.h"

namespace stretto::cli {

// The checkpoints in the output folder of a run or in its checkpoints/, or `folder` if it is one. Oldest first, never
// empty: throws DataError if there is none.
std::vector<checkpoint_format::Checkpoint> find_checkpoints(const std::filesystem::path& folder);

// `folder` as a checkpoint; nullopt if it is none.
std::optional<checkpoint_format::Checkpoint> as_checkpoint(const std::filesystem::path& folder);

// checkpoints/ in the output folder of a run, else `folder` itself.
std::filesystem::path checkpoints_in(const std::filesystem::path& folder);

[[noreturn]] void refuse_empty(const std::filesystem::path& folder);

}  // namespace stretto::cli
