#include "stretto/launch/hosts/clocks.h"

#include <chrono>

namespace stretto::launch {

int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace stretto::launch
