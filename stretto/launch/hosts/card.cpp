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
        "the job's store holds something else than the card of a host: hosts have different versions of stretto, or a stranger uses this store");
  }
}

}  // namespace stretto::launch
