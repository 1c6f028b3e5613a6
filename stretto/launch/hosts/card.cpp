#include "stretto/launch/hosts/card.h"

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"

namespace stretto::launch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostCard, host, process, nodes, ranks, inputs)

std::string encode(const HostCard& card) {
  return nlohmann::json(card).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HostCard decode_card(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<HostCard>();
  } catch (const nlohmann::json::exception&) {
    throw DistributedError(
        "the job's store has an invalid entry of a host; all hosts must run the same version of stretto, and no other program may use this store");
  }
}

}  // namespace stretto::launch
