#pragma once

#include <string>

namespace stretto {

// The time that records carry. It decides nothing: durations are measured with std::chrono::steady_clock.
double seconds_since_1970();

// The name of this machine.
std::string host_name();

}  // namespace stretto
