#pragma once

#include "tests/fuzz/fuzz.h"

#include "stretto/text/tokenizer.h"

namespace stretto::fuzz {

// Checks the rules of every encoding. `text_bytes`: the size of the longest encoded text.
inline void require_sound(const text::Tokenizer& tokenizer, const text::Encoding& encoding,
                          size_t text_bytes) {
  require(encoding.offsets.size() == encoding.size() && encoding.type_ids.size() == encoding.size() &&
              encoding.word_ids.size() == encoding.size() &&
              encoding.sequence_ids.size() == encoding.size() &&
              encoding.special_tokens_mask.size() == encoding.size(),
          "the columns of an encoding are of equal length");
  for (const int32_t id : encoding.ids) require(tokenizer.token(id).has_value(), "every id has a token");
  for (const text::Offset& offset : encoding.offsets) {
    require(offset.begin <= offset.end, "offsets are ranges");
    require(static_cast<size_t>(offset.end) <= text_bytes, "offsets lie in the text");
  }
}

}  // namespace stretto::fuzz
