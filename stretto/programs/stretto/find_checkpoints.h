#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "stretto/checkpoint_format/folder.h"

namespace stretto::cli {

// The checkpoints in `folder`: the output folder of a run, its checkpoints/, or a checkpoint itself. Oldest
// first. Throws DataError if there is none.
std::vector<checkpoint_format::Checkpoint> find_checkpoints(const std::filesystem::path& folder);

// The checkpoint `folder`; nullopt if it is not a checkpoint.
std::optional<checkpoint_format::Checkpoint> as_checkpoint(const std::filesystem::path& folder);

// checkpoints/ in the output folder of a run, else `folder` itself.
std::filesystem::path checkpoints_in(const std::filesystem::path& folder);

[[noreturn]] void refuse_empty(const std::filesystem::path& folder);

}  // namespace stretto::cli
