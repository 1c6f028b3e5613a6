#pragma once

#include <optional>

#include "stretto/corpus/tagged.h"
#include "stretto/text/tokenizer.h"

namespace stretto::data {

// The words around a sentence that are read with it (Schweter and Akbik 2020, FLERT).
struct ContextOptions {
  int64_t words = 0;            // maximum number on each side; 0: none
  bool within_document = true;  // only words of the sentence's document
  // Its tokens have context_word instead of -1 as their word, so that they can be left out.
  bool marked = false;
};

// The word id of the tokens of marked context.
inline constexpr int32_t context_word = -2;

// Encodes sentence `index` with its context as one sequence. If that does not fit, the farthest words of the
// side with more tokens are dropped first. Only tokens of the sentence itself have the id of a word. Returns
// nullopt if the sentence alone has more than `max_length` tokens, including special ones.
std::optional<text::Encoding> encode_in_context(const corpus::TaggedCorpus& corpus, int64_t index,
                                                const ContextOptions& options,
                                                const text::Tokenizer& tokenizer, size_t max_length);

}  // namespace stretto::data
