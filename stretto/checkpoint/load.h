#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/option_names.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/comm/group.h"
#include "stretto/tensor/state.h"

namespace stretto::checkpoint {

// Writes a checkpoint's tensors into the memory that `state` refers to and replaces its scalars, regardless
// of the world size and regions with which it was saved. Names, shapes and dtypes are compared before
// anything is written, and each piece's checksum before that piece is written. Each of the checkpoint's
// tensors must be in the table of some rank of `group`. Throws DataError on all ranks, naming the tensor if
// the checkpoint is of another model, and the file if it is damaged. `names`: the name of "precision", which
// determines dtypes. Collective, with the same checkpoint on all ranks.
checkpoint_format::Manifest load(Group& group, const std::filesystem::path& checkpoint, State& state,
                                 const OptionNames& names = {});

// The stored pieces that load() reads for an entry.
std::vector<const checkpoint_format::StoredPiece*> pieces_of(const Entry& entry,
                                                             const checkpoint_format::StoredEntry& stored);

// Returns on every rank the checkpoint that `choose` finds on rank 0; it may take any time
// (Group::rank_0_first). Collective.
std::optional<std::filesystem::path> choose(
    Group& group, const std::function<std::optional<checkpoint_format::Checkpoint>()>& choose);

}  // namespace stretto::checkpoint
