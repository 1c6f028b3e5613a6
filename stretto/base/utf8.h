#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stretto {

// UTF-8 validation and repair of text that is read from files: JSON must be UTF-8.

// The position of the first byte that does not begin a valid code point; text.size() if there is none.
size_t find_invalid_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) { return find_invalid_utf8(text) == text.size(); }

// `text` itself when it is valid UTF-8; else `buffer`, filled with a copy where each maximal invalid subpart
// (Unicode 15, section 3.9, table 3-8) is U+FFFD, as Python's bytes.decode(errors="replace") does.
std::string_view replace_invalid_utf8(std::string_view text, std::string& buffer);

// The longest beginning of at most `most` bytes that ends with a whole code point. REQUIRES: valid UTF-8.
std::string_view cut_utf8(std::string_view text, size_t most);

}  // namespace stretto
