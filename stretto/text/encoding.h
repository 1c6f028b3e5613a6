#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stretto::text {

// The code points [begin, end) of the text that a token covers, counted as in Hugging Face's Python API.
struct Offset {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const Offset&) const = default;
};

// An encoded text or pair of texts: columns of equal length, one row per token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // segment ids: 0 or 1, set by the template
  // Positions in the token's text, or in its word for split texts; {0, 0} for template tokens.
  std::vector<Offset> offsets;
  std::vector<int32_t> word_ids;     // index of the token's word in its text; -1 for tokens of the template
  std::vector<int8_t> sequence_ids;  // 0: first text, 1: second text, -1: tokens of the template
  std::vector<uint8_t> special_tokens_mask;  // 1 for tokens of the template

  size_t size() const { return ids.size(); }
};

// Which text of a pair is truncated; names are Hugging Face's.
enum class Truncation { longest_first, only_first, only_second, do_not_truncate };

// A side of a text.
enum class Side { left, right };

// How a text is encoded: template tokens and truncation.
struct EncodeOptions {
  bool special_tokens = true;             // add the tokens of the template
  std::optional<size_t> max_length = {};  // tokens, including those of the template; nullopt: no truncation
  Truncation truncation = Truncation::longest_first;  // no effect without max_length
  size_t stride = 0;                                  // tokens that a window shares with the previous one
  std::optional<Side> truncation_side = {};  // the side at which tokens are removed; default: the tokenizer's
};

}  // namespace stretto::text
