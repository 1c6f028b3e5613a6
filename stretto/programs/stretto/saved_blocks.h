#pragma once

#include "stretto/compat/llama_script.h"

namespace stretto::cli {

// Throws ConfigError if the first block has another length, DataError for files that cannot be read.
void require_block_length(const compat::SavedBlocks& blocks);

}  // namespace stretto::cli
