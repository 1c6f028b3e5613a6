#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stretto::text {

// The bytes of RFC 4648's base 64, padded; nothing if it is malformed.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace stretto::text
