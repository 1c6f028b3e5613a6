#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "stretto/base/fd.h"
#include "stretto/cluster/socket.h"
#include "stretto/cluster/store_table.h"

namespace stretto::cluster {

struct StoreServerOptions {
  // At this limit, further connections wait in the kernel's queue, and open ones that have not authenticated
  // are closed.
  size_t max_connections = 1024;
  std::chrono::milliseconds greeting_timeout{10'000};  // a client must have authenticated by then
  StoreLimits limits = {};
  bool encrypt = false;  // connections are encrypted (tls.h)
};

// The job's rendezvous store: keys and values in this process's memory, served to clients that authenticate
// with the job's secret (see store_protocol.h). One thread serves all connections; it starts in the
// constructor and ends in the destructor, which closes every connection. A client that violates the protocol
// is disconnected, with a warning in the log (see refusal_log.h); so is a process of another user on a Unix
// socket.
class StoreServer {
 public:
  // `bound` is a socket that bind_socket has returned. Throws ConfigError for an empty secret, IoError if the
  // system refuses to listen.
  StoreServer(Fd bound, std::string secret, StoreServerOptions options = {});
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  const Endpoint& endpoint() const { return endpoint_; }

  // RefusalLog::unproved_hosts(). Thread-safe.
  std::string unproved_hosts() const;

  // Waits until no client is connected, or for `at_most`.
  void wait_until_unused(std::chrono::milliseconds at_most) const;

 private:
  class Loop;

  Endpoint endpoint_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace stretto::cluster
