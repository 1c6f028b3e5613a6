#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "stretto/cluster/store_protocol.h"

namespace stretto::cluster {

// The limits of a store; a request that would exceed them is refused.
struct StoreLimits {
  size_t keys = size_t{1} << 20;
  size_t bytes = size_t{256} << 20;  // of keys and values together
};

// The keys and values of a store. Requests have the semantics of c10d's TCPStore. Not thread-safe; owned by
// the server's thread.
class StoreTable {
 public:
  explicit StoreTable(StoreLimits limits = {}) : limits_(limits) {}

  // Performs a request. Returns nullopt for a get or a wait whose keys do not all exist yet: call again after
  // the next change.
  std::optional<Reply> answer(const Request& request);

 private:
  bool has_all(const std::vector<std::string>& keys) const;
  std::optional<Reply> put(const std::string& key, const std::string& value);  // a refusal, or nullopt
  Reply add(const std::string& key, int64_t summand);
  Reply remove(const std::string& key);
  Reply compare_set(const Request& request);

  StoreLimits limits_;
  size_t bytes_ = 0;
  std::unordered_map<std::string, std::string> values_;
};

}  // namespace stretto::cluster
