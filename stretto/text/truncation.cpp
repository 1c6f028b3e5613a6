#include "stretto/text/truncation.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto::text {
namespace {

struct Lengths {
  size_t first;
  size_t second;
};

// The shorter text stays whole if it fits into half the room; if neither does, the longer one gets the odd
// token. The first of two texts of equal length counts as the shorter one.
Lengths longest_first(size_t first, size_t second, size_t room) {
  const bool swapped = first > second;
  size_t shorter = std::min(first, second);
  size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return swapped ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

// The remaining length of the only text that may be truncated.
size_t left_of(const char* which, size_t size, size_t excess, size_t room) {
  if (size > excess) return size - excess;
  throw DataError(
      "tokenizer: the {} text has {} tokens, and {} would have to be removed to keep {} in total; truncate the longest text first, or raise the maximum length",
      which, size, excess, room);
}

Lengths lengths_left(size_t first, std::optional<size_t> second, size_t room, Truncation truncation) {
  const size_t total = first + second.value_or(0);
  if (truncation == Truncation::do_not_truncate || total <= room) return {first, second.value_or(0)};
  if (room == 0) return {0, 0};
  const size_t excess = total - room;
  switch (truncation) {
    case Truncation::only_first:
      return {left_of("first", first, excess, room), second.value_or(0)};
    case Truncation::only_second:
      if (!second) throw ConfigError("tokenizer: truncation only_second needs a pair; this is a single text");
      return {first, left_of("second", *second, excess, room)};
    default:
      return second ? longest_first(first, *second, room) : Lengths{room, 0};
  }
}

// The windows of one text, with at most `limit` tokens each.
std::vector<TokenRange> windows_of(size_t size, size_t limit, size_t stride, Side side, bool all) {
  const bool right = side == Side::right;
  if (size <= limit) return {{0, size}};
  if (!all) return {right ? TokenRange{0, limit} : TokenRange{size - limit, size}};
  if (stride >= limit) {
    throw ConfigError("tokenizer: a stride of {} must be smaller than the {} tokens of text in a window",
                      stride, limit);
  }
  std::vector<TokenRange> windows;
  const size_t step = limit - stride;
  for (size_t skipped = 0;; skipped += step) {
    const size_t reached = std::min(skipped + limit, size);
    windows.push_back(right ? TokenRange{skipped, reached} : TokenRange{size - reached, size - skipped});
    if (reached == size) return windows;
  }
}

}  // namespace

std::vector<Window> plan_windows(size_t first, std::optional<size_t> second, size_t room,
                                 const EncodeOptions& options, Side side, bool all_windows) {
  const Lengths left = lengths_left(first, second, room, options.truncation);
  const auto firsts = windows_of(first, left.first, options.stride, side, all_windows);
  const auto seconds = windows_of(second.value_or(0), left.second, options.stride, side, all_windows);
  std::vector<Window> windows = {{firsts[0], seconds[0]}};
  for (size_t i = 1; i < firsts.size(); ++i) {
    for (const TokenRange& other : seconds) windows.push_back({firsts[i], other});
  }
  for (size_t i = 1; i < seconds.size(); ++i) windows.push_back({firsts[0], seconds[i]});
  return windows;
}

}  // namespace stretto::text
