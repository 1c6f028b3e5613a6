#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "stretto/base/error.h"

namespace stretto {

// The message of the E that `call` throws, or "no error". (With gmock's ThrowsMessage, each call adds 300
// functions to the test.)
template <class E = Error, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

inline ::testing::Matcher<const std::string&> has_each(const std::vector<std::string>& parts) {
  std::vector<::testing::Matcher<const std::string&>> matchers;
  for (const std::string& part : parts) matchers.emplace_back(::testing::HasSubstr(part));
  return ::testing::AllOfArray(matchers);
}

// Matches a message that contains each of `parts`: the place, the wrong value, what to do. Tests check these
// parts; tests/golden/messages.txt checks the whole sentences.
template <class... Parts>
::testing::Matcher<const std::string&> has_all(const Parts&... parts) {
  return has_each({std::string(parts)...});
}

}  // namespace stretto
