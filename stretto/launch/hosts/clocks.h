#pragma once

#include <cstdint>

namespace stretto::launch {

// Milliseconds since 1970 by this host's clock: compared between hosts for a warning, and for nothing else.
int64_t wall_clock_ms();

}  // namespace stretto::launch
