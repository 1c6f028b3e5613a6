#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace stretto::cluster {

// Detects that this process was stopped while it waited (Ctrl-Z, a frozen container, a manager that suspends
// the job), so that the deadline of the wait excludes that time: the processes that it waits for were most
// likely stopped, too.
class PauseWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration longest_sleep = std::chrono::seconds(1);

  // The time for which the process was stopped since the last call or the constructor: the excess over twice
  // the longest sleep. REQUIRES: the caller sleeps for at most longest_sleep between two calls.
  Clock::duration look(Clock::time_point now = Clock::now()) {
    const Clock::duration away = now - std::exchange(last_, now) - 2 * longest_sleep;
    return std::max(away, Clock::duration::zero());
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace stretto::cluster
