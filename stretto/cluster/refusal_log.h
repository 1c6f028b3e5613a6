#pragma once

#include <string>

#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// Logs a warning for each connection that the store has closed, without letting a stranger fill the log: after the
// first twenty it writes at most one line per minute, with the number of others. Not thread-safe.
class RefusalLog {
 public:
  void add(const std::string& peer, const std::string& reason, Clock::time_point now = Clock::now());

 private:
  int logged_ = 0;
  int skipped_ = 0;
  Clock::time_point quiet_until_{};
};

}  // namespace stretto::cluster
