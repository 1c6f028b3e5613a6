#pragma once

#include <gmock/gmock.h>

namespace stretto {

// Matches a message that contains each of these: the place, the value that is wrong, what to do. Tests assert
// these and leave the sentence around them to tests/golden/messages.txt.
template <class... Parts>
auto has_all(const Parts&... parts) {
  return ::testing::AllOf(::testing::HasSubstr(parts)...);
}

}  // namespace stretto
