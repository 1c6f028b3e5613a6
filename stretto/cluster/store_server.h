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
  // Further ones wait in the kernel's queue until one closes; those that have not authenticated are closed at once then.
  size_t max_connections = 1024;
  std::chrono::milliseconds greeting_timeout{10'000};  // a client must have authenticated by then
  StoreLimits limits = {};
};

// The job's rendezvous store: keys and values in this process's memory, served to clients that prove to know
// the job's secret (see store_protocol.h). One thread serves all; it starts in the constructor and ends in
// the destructor, which closes every connection. A client that violates
// the protocol is disconnected, with a warning in the log (see refusal_log.h); on a Unix socket so is a process of another user.
class StoreServer {
 public:
  // `bound` is a socket as bind_socket makes it. Throws ConfigError for an empty secret, IoError where the
  // system refuses to listen.
  StoreServer(Fd bound, std::string secret, StoreServerOptions options = {});
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  const Endpoint& endpoint() const { return endpoint_; }

  // Returns once no client is connected any more, or after `at_most`.
  void wait_until_unused(std::chrono::milliseconds at_most) const;

 private:
  class Loop;

  Endpoint endpoint_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace stretto::cluster
