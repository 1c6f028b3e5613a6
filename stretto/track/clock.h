#pragma once

namespace stretto {

// The time that records carry. It decides nothing: durations are measured with std::chrono::steady_clock.
double seconds_since_1970();

}  // namespace stretto
