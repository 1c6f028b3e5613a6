#pragma once

#include <string>

#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// Warns of each connection that the store has closed, without letting a stranger fill the log: after the
// first twenty it writes at most one line a minute, which says how many it stands for. Not thread-safe.
class RefusalLog {
 public:
  void tell(const std::string& peer, const std::string& reason, Clock::time_point now = Clock::now());

 private:
  int told_ = 0;
  int untold_ = 0;
  Clock::time_point quiet_until_{};
};

}  // namespace stretto::cluster
