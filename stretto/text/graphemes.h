#pragma once

#include <cstddef>
#include <string_view>

namespace stretto::text {

// The end of the extended grapheme cluster (Unicode annex 29) that begins at `begin`. REQUIRES: valid UTF-8,
// begin < text.size(), and `begin` is a boundary.
size_t end_of_grapheme(std::string_view text, size_t begin);

}  // namespace stretto::text
