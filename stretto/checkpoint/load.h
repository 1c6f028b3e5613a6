#pragma once

#include <filesystem>

#include "stretto/archive/manifest.h"
#include "stretto/tensor/state.h"

namespace stretto::checkpoint {

// Writes a checkpoint's tensors into the memory that `state` refers to and replaces its scalars, whatever ranks and
// regions wrote it. Names, shapes and types are compared before the first byte is written, each piece's checksum before
// the piece is. Throws DataError naming the tensor where the checkpoint is of another model, and the file where it is
// damaged.
archive::Manifest load(const std::filesystem::path& checkpoint, State& state);

}  // namespace stretto::checkpoint
