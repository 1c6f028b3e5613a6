#pragma once

#include <span>
#include <string>
#include <string_view>

#include "stretto/text/tokenizer.h"

namespace stretto::cli {

// The output of `stretto tokenize`: a property of each token, or the text of the ids that it reads.
enum class TokenizeOutput { ids, tokens, offsets, type_ids, word_ids, sequence_ids, json, text };

// Appends the line of one input to `out`: windows are separated by tabs, their tokens by spaces. JSON is an
// object with the keys of transformers' tokenizers, or with `as_list` a list of one object per window.
void append_encodings(const text::Tokenizer& tokenizer, std::span<const text::Encoding> windows,
                      TokenizeOutput output, bool as_list, std::string& out);

// Appends the text of a line of ids. Throws DataError, which begins with `place`, for a word that is not the
// id of a token.
void append_text(const text::Tokenizer& tokenizer, std::string_view line, bool skip_special,
                 const std::string& place, std::string& out);

}  // namespace stretto::cli
