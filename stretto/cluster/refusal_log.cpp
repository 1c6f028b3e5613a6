#include "stretto/cluster/refusal_log.h"

#include <vector>

#include <fmt/ranges.h>

#include "stretto/base/log.h"

namespace stretto::cluster {
namespace {

// `peer` without its port, which differs between the connections of a host.
std::string host_of(const std::string& peer) { return peer.substr(0, peer.find(" port ")); }

}  // namespace

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

void RefusalLog::ended_unproved(const std::string& peer, const std::string& reason) {
  constexpr size_t most = 64;
  const std::lock_guard lock(mutex_);
  if (proved_.contains(host_of(peer))) return;
  if (unproved_.size() < most || unproved_.contains(host_of(peer))) unproved_[host_of(peer)] = reason;
}

void RefusalLog::proved(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  proved_.insert(host_of(peer));
  unproved_.erase(host_of(peer));
}

std::string RefusalLog::unproved_hosts() const {
  constexpr size_t shown = 3;
  const std::lock_guard lock(mutex_);
  std::vector<std::string> hosts;
  for (const auto& [host, reason] : unproved_)
    if (hosts.size() < shown) hosts.push_back(fmt::format("{} ({})", host, reason));
  return fmt::format("{}", fmt::join(hosts, ", "));
}

}  // namespace stretto::cluster
