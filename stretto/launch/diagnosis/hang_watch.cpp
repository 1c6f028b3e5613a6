#include "stretto/launch/diagnosis/hang_watch.h"

#include <algorithm>

namespace stretto::launch {

HangWatch::HangWatch(const cluster::FlightBoard& board, std::chrono::milliseconds timeout)
    : board_(board),
      timeout_(timeout),
      pause_(std::clamp(timeout / 10, std::chrono::milliseconds(20), std::chrono::milliseconds(1000))),
      awake_since_(Clock::now()) {
  if (timeout_.count() > 0) next_look_ = awake_since_ + pause_;
}

bool HangWatch::suspects(Clock::time_point now) {
  if (now < next_look_) return false;
  const bool was_away = now > next_look_ + std::max<Clock::duration>(5 * pause_, std::chrono::seconds(1));
  if (was_away) awake_since_ = now;
  next_look_ = now + pause_;
  if (now - awake_since_ <= timeout_) return false;
  const auto limit =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch() - timeout_).count();
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    if (board_.progress(rank) < limit) return true;  // 0: it keeps no record (yet)
  }
  return false;
}

}  // namespace stretto::launch
