#pragma once

#include <cstdint>
#include <string>

namespace stretto {

// How often something happens, in the one unit that is not 0; never if all are.
struct Interval {
  int64_t steps = 0;
  double epochs = 0;
  double seconds = 0;

  bool operator==(const Interval&) const = default;
};

// "500" steps, "1ep" or "0.5ep" epochs, "30s", "10m" or "2h"; "never". Throws ConfigError for anything else.
Interval parse_interval(const std::string& text);

}  // namespace stretto
