#include "stretto/comm/holders.h"

namespace stretto::comm {

Holders holders_of(const Group& group) {
  return {.set = group.id(), .ranks = group.size(), .me = group.rank()};
}

}  // namespace stretto::comm
