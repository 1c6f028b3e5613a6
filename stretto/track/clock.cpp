#include "stretto/track/clock.h"

#include <chrono>

namespace stretto {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace stretto
