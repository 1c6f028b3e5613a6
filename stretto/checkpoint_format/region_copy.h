#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/base/region.h"

namespace stretto::checkpoint_format {

// Copies the elements that two regions of one tensor have in common, from `source` (the first element of
// `from`) to `target` (the first of `to`). Returns their number.
int64_t copy_common(const Region& from, const std::byte* source, const Region& to, std::byte* target,
                    int64_t element_bytes);

}  // namespace stretto::checkpoint_format
