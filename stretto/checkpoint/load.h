#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "stretto/base/option_names.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/comm/group.h"
#include "stretto/tensor/state.h"

namespace stretto::checkpoint {

// Writes a checkpoint's tensors into the memory that `state` refers to and replaces its scalars, regardless
// of the world size and regions with which it was saved. Names, shapes and types are compared before anything
// is written, each piece's checksum before that piece is. Each of its tensors must be in the table of some
// rank of `group`. Throws DataError naming the tensor, at all ranks, where the checkpoint is of another
// model, and the file where it is damaged. `names`: of "precision", which decides types. Collective, with the
// same checkpoint at all ranks.
checkpoint_format::Manifest load(Group& group, const std::filesystem::path& checkpoint, State& state,
                                 const OptionNames& names = {});

// The checkpoint that `choose` finds at rank 0, at every rank; it may take any time (Group::rank_0_first).
// Collective.
std::optional<std::filesystem::path> choose(
    Group& group, const std::function<std::optional<checkpoint_format::Checkpoint>()>& choose);

}  // namespace stretto::checkpoint
