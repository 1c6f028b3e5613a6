#pragma once

#include "stretto/comm/group.h"
#include "stretto/tensor/state.h"

namespace stretto::comm {

// All ranks of a group as the holders of entries that are equal on each of them.
Holders holders_of(const Group& group);

}  // namespace stretto::comm
