#pragma once

#include <optional>

#include "stretto/corpus/tagged.h"
#include "stretto/text/tokenizer.h"

namespace stretto::data {

// Which words around a sentence are read with it (Schweter and Akbik 2020, FLERT).
struct ContextOptions {
  int64_t words = 0;            // at most, on each side; 0: none
  bool within_document = true;  // of the sentence's document only
};

// Sentence `index` as one sequence between its context, as much of it as fits: the farthest words are left out first, those of the side
// that has more tokens. Only tokens of the sentence's own words have a word id. Unset if the sentence alone has more than
// `max_length` tokens, special ones included.
std::optional<text::Encoding> encode_in_context(const corpus::TaggedCorpus& corpus, int64_t index,
                                                const ContextOptions& options,
                                                const text::Tokenizer& tokenizer, size_t max_length);

}  // namespace stretto::data
