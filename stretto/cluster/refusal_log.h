#pragma once

#include <string>
#include <utility>

#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// Logs a warning for each connection that was closed because its other side failed to authenticate. The rate
// is limited: after the first twenty lines, at most one per minute, with the number of omitted ones. Not
// thread-safe.
class RefusalLog {
 public:
  // `what`: the owner of the connections, for messages.
  explicit RefusalLog(std::string what = "store") : what_(std::move(what)) {}

  void add(const std::string& peer, const std::string& reason, Clock::time_point now = Clock::now());

 private:
  const std::string what_;
  int logged_ = 0;
  int skipped_ = 0;
  Clock::time_point quiet_until_{};
};

}  // namespace stretto::cluster
