#pragma once

#include "stretto/compat/keys.h"

namespace stretto::compat {

// The keys of DeepSpeed's configuration. read_deepspeed() reads those that depend on each other.
const std::vector<Key>& deepspeed_keys();

}  // namespace stretto::compat
