#pragma once

namespace stretto {

// Limits that keep sizes, and their multiples, within 64 bits.
inline constexpr double max_count = 1e6;
inline constexpr double max_total = 1e9;

}  // namespace stretto
