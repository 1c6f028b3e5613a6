#include "stretto/cluster/refusal_log.h"

#include "stretto/base/log.h"

namespace stretto::cluster {

void RefusalLog::tell(const std::string& peer, const std::string& reason, Clock::time_point now) {
  constexpr int in_full = 20;
  if (told_ >= in_full && now < quiet_until_) {
    ++untold_;
    return;
  }
  const std::string more =
      untold_ > 0 ? fmt::format(" ({} others were closed since the last such line)", untold_) : "";
  log::warning("store: closed the connection from {}: {}{}", peer, reason, more);
  ++told_;
  untold_ = 0;
  quiet_until_ = now + std::chrono::minutes(1);
}

}  // namespace stretto::cluster
