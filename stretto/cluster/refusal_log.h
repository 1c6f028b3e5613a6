#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "stretto/cluster/socket.h"

namespace stretto::cluster {

// Logs a warning for each connection that was closed because its other side failed to authenticate. The rate
// is limited: after the first twenty lines, at most one per minute, with the number of omitted ones. Also
// lists hosts from which no process has authenticated. Only unproved_hosts() is thread-safe.
class RefusalLog {
 public:
  // `what`: the owner of the connections, for messages.
  explicit RefusalLog(std::string what = "store") : what_(std::move(what)) {}

  void add(const std::string& peer, const std::string& reason, Clock::time_point now = Clock::now());

  // Call these when a connection from `peer` ends before it authenticated, and when one authenticates.
  void ended_unproved(const std::string& peer, const std::string& reason);
  void proved(const std::string& peer);
  // Hosts with connections of which none has authenticated, each with the reason of its last one, at most
  // three: "10.0.0.7 (it does not have the job's secret)"; "" if there are none.
  std::string unproved_hosts() const;

 private:
  const std::string what_;
  int logged_ = 0;
  int skipped_ = 0;
  Clock::time_point quiet_until_{};
  mutable std::mutex mutex_;                     // guards the next members
  std::map<std::string, std::string> unproved_;  // the reason by host
  std::set<std::string> proved_;                 // hosts
};

}  // namespace stretto::cluster
