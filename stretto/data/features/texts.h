#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stretto/text/tokenizer.h"

// The inputs of models for a text or a pair of texts, in training and in serving.
namespace stretto::data {

// The tokens of a text, or of a text and its `pair`, with special tokens: at most `max_length`, the longer
// text truncated first. Throws as Tokenizer::encode() does.
text::Encoding text_tokens(const text::Tokenizer& tokenizer, std::string_view text,
                           std::optional<std::string_view> pair, std::optional<int64_t> max_length);

}  // namespace stretto::data
