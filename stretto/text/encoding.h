#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stretto::text {

// Code points [begin, end) of the text that a token stands for, as Hugging Face's Python API counts them.
struct Offset {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const Offset&) const = default;
};

// A text, or a pair of texts, as a model reads it: columns of equal length, one row per token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // segment embeddings: 0 or 1, as the template assigns them
  std::vector<Offset>
      offsets;  // in the token's own text, for words in its own word; {0, 0} for tokens of the template
  std::vector<int32_t> word_ids;     // index of the token's word in its text; -1 for tokens of the template
  std::vector<int8_t> sequence_ids;  // 0: first text, 1: second text, -1: tokens of the template
  std::vector<uint8_t> special_tokens_mask;  // 1 for tokens of the template

  size_t size() const { return ids.size(); }
};

// Which text of a pair is cut. Names as in Hugging Face.
enum class Truncation { longest_first, only_first, only_second, do_not_truncate };

enum class Side { left, right };

struct EncodeOptions {
  bool special_tokens = true;             // what the template adds
  std::optional<size_t> max_length = {};  // tokens, those of the template included; none: nothing is cut
  Truncation truncation = Truncation::longest_first;  // of no effect without max_length
  size_t stride = 0;                                  // tokens that a window shares with the one before it
  std::optional<Side> truncation_side = {};           // where tokens are cut off; default: the tokenizer's
};

}  // namespace stretto::text
