#pragma once

#include <filesystem>

#include "stretto/config/recipe.h"

namespace stretto {

// The folder of the checkpoints of a run by this recipe.
std::filesystem::path checkpoints_of(const Recipe& recipe);

// Throws ConfigError if `resume` cannot be followed: true without a checkpoint, false although
// there are checkpoints of an earlier run, or a folder that is not a checkpoint. Lists folders, without
// reading checkpoints.
void require_requested_checkpoint(const Recipe& recipe);

}  // namespace stretto
