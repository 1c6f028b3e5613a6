#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "stretto/text/encoding.h"

namespace stretto::text {

// Tokens [begin, end) of a text.
struct TokenRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

// The tokens of each text in one encoding.
struct Window {
  TokenRange first;
  TokenRange second = {};
  bool operator==(const Window&) const = default;
};

// Truncates texts of `first` and `second` tokens (nullopt: a single text) to at most `room` tokens, like
// Hugging Face's tokenizers. The first window is the truncated encoding; with `all_windows` the overflowing
// ones follow in the library's order, such that every token of each text is in a window. `side`: where tokens
// are removed. Throws ConfigError if the strategy is not applicable: only_second without a second text, a
// stride larger than a window, no room for windows; DataError if the text to truncate is too short.
std::vector<Window> plan_windows(size_t first, std::optional<size_t> second, size_t room,
                                 const EncodeOptions& options, Side side, bool all_windows);

}  // namespace stretto::text
