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

// What one encoding holds of each text.
struct Window {
  TokenRange first;
  TokenRange second = {};
  bool operator==(const Window&) const = default;
};

// How texts of `first` and `second` tokens (none: a single text) are cut so that at most `room` remain, as Hugging Face's
// tokenizers cut them. The first window is the truncated encoding; with `all_windows` the overflowing ones follow in the
// library's order, such that every token of each text is in a window. `side` is where tokens are cut off.
// Throws ConfigError if the strategy does not fit: only_second without a second text, a stride that a window cannot hold, no
// room for windows; DataError if the text to cut is too short to give way to the other one.
std::vector<Window> plan_windows(size_t first, std::optional<size_t> second, size_t room,
                                 const EncodeOptions& options, Side side, bool all_windows);

}  // namespace stretto::text
