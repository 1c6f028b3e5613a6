#pragma once

#include <chrono>

#include "stretto/cluster/flight_recorder.h"
#include "stretto/cluster/socket.h"

namespace stretto::launch {

// When it is time to ask whether ranks hang: cheap enough to be asked all the time, and never fooled by a
// pause of the launcher itself (Ctrl-Z, a terminal that takes no output), during which ranks could not move
// either.
class HangWatch {
 public:
  using Clock = cluster::Clock;

  // Without `timeout` (0) it is never time.
  HangWatch(const cluster::FlightBoard& board, std::chrono::milliseconds timeout);

  Clock::time_point next_look() const { return next_look_; }

  // Whether a rank has shown no progress, or has kept no record at all, for longer than the timeout. To be called at
  // next_look().
  bool suspects(Clock::time_point now = Clock::now());

 private:
  const cluster::FlightBoard& board_;
  std::chrono::milliseconds timeout_;
  Clock::duration pause_;  // between two looks
  Clock::time_point next_look_ = Clock::time_point::max();
  Clock::time_point awake_since_;
};

}  // namespace stretto::launch
