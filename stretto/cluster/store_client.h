#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/cluster/socket.h"
#include "stretto/cluster/store_protocol.h"

namespace stretto::cluster {

// A key was not set in time.
struct StoreTimeout : DistributedError {
  using DistributedError::DistributedError;
};

struct StoreClientOptions {
  std::chrono::milliseconds connect_timeout{30'000};  // for the server to start and send its greeting
  std::chrono::milliseconds answer_timeout{
      30'000};  // for any reply, in addition to the time that a call asked to wait
  const char* host_process = "the launcher";  // where the server runs, for messages
  bool encrypt = false;                       // as the server (StoreServerOptions)
};

// A rank's side of the rendezvous store. Every call blocks until the server has answered, and throws
// DistributedError if it refuses or does not answer. Keys have up to 4 KiB, values are any bytes up to 16
// MiB. Thread-safe: concurrent calls use separate connections (an idle one, else a new one), so that a call
// that waits for a key does not delay others.
class StoreClient {
 public:
  // Connects and authenticates with `secret`.
  StoreClient(Endpoint server, std::string secret, StoreClientOptions options = {});

  void set(const std::string& key, std::string_view value);

  // Waits for the key. Throws StoreTimeout.
  std::string get(const std::string& key, std::chrono::milliseconds timeout);

  // Adds to the number that is stored as decimal text under `key` (0 if missing); returns the sum.
  int64_t add(const std::string& key, int64_t summand);

  // Adds to the number under each key when this process or this client ends or its connection breaks. The
  // server notices that at once unless the network goes down.
  void add_at_end(const std::vector<std::string>& keys, int64_t summand);

  // Whether all keys exist now.
  bool check(const std::vector<std::string>& keys);

  // Waits for all keys. Throws StoreTimeout.
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);

  // Sets `key` to `desired` if its value is `expected`, or if it is missing and `expected` is empty. Returns
  // the value afterwards; `expected` if the key is still missing.
  std::string compare_set(const std::string& key, std::string_view expected, std::string_view desired);

  // Returns whether the key existed.
  bool remove(const std::string& key);

  const Endpoint& server() const { return server_; }

 private:
  Reply exchange(const Request& request);
  Reply exchange_on(const Fd& socket, const Request& request, const std::string& frame);
  Fd take_connection();
  Fd connect();

  Endpoint server_;
  std::string secret_;
  StoreClientOptions options_;
  std::mutex mutex_;  // guards idle_, never held over a network operation
  std::vector<Fd> idle_;
  std::vector<Fd> held_;  // connections of add_at_end(), kept open for the lifetime of this client
};

}  // namespace stretto::cluster
