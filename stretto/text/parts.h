#pragma once

#include <cstddef>
#include <string_view>

namespace stretto::text {

// The positions at which long texts are cut for tokenizers that read in parts (Tokenizer::reads_in_parts):
// before a space (U+0020) that follows a character other than white space. Bytes need not be UTF-8.

// REQUIRES: position < text.size().
bool may_cut(std::string_view text, size_t position);

// The last position where `text` may be cut; 0: there is none.
size_t last_cut(std::string_view text);

}  // namespace stretto::text
