#pragma once

#include <chrono>

#include "stretto/cluster/flight_recorder.h"
#include "stretto/cluster/socket.h"

namespace stretto::launch {

// Decides when to look for hanging ranks. It is cheap enough for each pass of the supervising loop, and
// ignores pauses of the launcher itself (Ctrl-Z), during which its ranks may have been stopped, too.
class HangWatch {
 public:
  using Clock = cluster::Clock;

  // timeout 0: never.
  HangWatch(const cluster::FlightBoard& board, std::chrono::milliseconds timeout);

  Clock::time_point next_look() const { return next_look_; }

  // Whether a rank has made no progress, or has kept no record at all, for longer than the timeout. Call it
  // at next_look().
  bool suspects(Clock::time_point now = Clock::now());

 private:
  const cluster::FlightBoard& board_;
  std::chrono::milliseconds timeout_;
  Clock::duration pause_;  // between two looks
  Clock::time_point next_look_ = Clock::time_point::max();
  Clock::time_point awake_since_;
};

}  // namespace stretto::launch
