#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "stretto/cluster/store_protocol.h"

namespace stretto::cluster {

// The keys and values of a store, and what each request does to them: c10d's TCPStore's meaning of every
// operation. Not thread-safe; the server's one thread owns it.
class StoreTable {
 public:
  // Nothing for a get or a wait whose keys are not all there yet: ask again after the next change.
  std::optional<Reply> answer(const Request& request);

 private:
  bool has_all(const std::vector<std::string>& keys) const;
  Reply add(const std::string& key, int64_t summand);
  Reply compare_set(const Request& request);

  std::unordered_map<std::string, std::string> values_;
};

}  // namespace stretto::cluster
