#include "stretto/cluster/refusal_log.h"

#include "stretto/base/log.h"

namespace stretto::cluster {

void RefusalLog::add(const std::string& peer, const std::string& reason, Clock::time_point now) {
  constexpr int in_full = 20;
  if (logged_ >= in_full && now < quiet_until_) {
    ++skipped_;
    return;
  }
  const std::string more =
      skipped_ > 0 ? fmt::format(" ({} others were closed since the last such line)", skipped_) : "";
  log::warning("{}: closed the connection from {}: {}{}", what_, peer, reason, more);
  ++logged_;
  skipped_ = 0;
  quiet_until_ = now + std::chrono::minutes(1);
}

}  // namespace stretto::cluster
