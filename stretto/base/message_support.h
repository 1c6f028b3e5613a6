#pragma once

#include <gmock/gmock.h>

namespace stretto {

// Matches a message that contains each of `parts`: the place, the wrong value, what to do. Tests check these
// parts; tests/golden/messages.txt checks the whole sentences.
template <class... Parts>
auto has_all(const Parts&... parts) {
  return ::testing::AllOf(::testing::HasSubstr(parts)...);
}

}  // namespace stretto
