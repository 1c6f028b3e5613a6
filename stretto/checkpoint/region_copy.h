#pragma once

#include <cstddef>

#include "stretto/archive/manifest.h"

namespace stretto::checkpoint {

// Copies the elements that two regions of one tensor have in common, from `source` (the first element of `from`) to
// `target` (the first of `to`). Returns how many there were.
int64_t copy_common(const archive::Region& from, const std::byte* source, const archive::Region& to,
                    std::byte* target, int64_t element_bytes);

}  // namespace stretto::checkpoint
