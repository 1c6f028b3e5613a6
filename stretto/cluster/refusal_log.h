#pragma once

#include <string>
#include <utility>

#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// Logs a warning for each connection that was closed because its other side proved nothing, without letting a stranger fill the log: after the
// first twenty it writes at most one line per minute, with the number of others. Not thread-safe.
class RefusalLog {
 public:
  // `what`: whose connections they are, for the lines.
  explicit RefusalLog(std::string what = "store") : what_(std::move(what)) {}

  void add(const std::string& peer, const std::string& reason, Clock::time_point now = Clock::now());

 private:
  const std::string what_;
  int logged_ = 0;
  int skipped_ = 0;
  Clock::time_point quiet_until_{};
};

}  // namespace stretto::cluster
