#pragma once

#include <optional>
#include <string>

#include "stretto/corpus/tagged.h"
#include "stretto/text/tokenizer.h"

namespace stretto::data {

// The words around a sentence that are read with it (Schweter and Akbik 2020, FLERT).
struct ContextOptions {
  int64_t words = 0;            // maximum number on each side; 0: none
  bool within_document = true;  // only words of the sentence's document
  // The id of a token in front of the sentence and behind it, which belongs to no word; also where there is
  // no context.
  std::optional<int32_t> separator = {};
  // Its tokens have context_word instead of -1 as their word, so that they can be left out.
  bool marked = false;
};

// The word id of the tokens of marked context.
inline constexpr int32_t context_word = -2;

// The id of a model's separator (WordReader::separator); nullopt for "". Throws DataError if the tokenizer
// does not have it.
std::optional<int32_t> separator_id(const std::string& separator, const text::Tokenizer& tokenizer);

// Inserts `separator` behind the tokens of the template at the begin of an encoded text, and before those at
// its end.
void surround(text::Encoding& encoding, int32_t separator, const text::Tokenizer& tokenizer);

// Encodes sentence `index` with its context as one sequence. If that does not fit, the farthest words of the
// side with more tokens are dropped first. Only tokens of the sentence itself have the id of a word. Returns
// nullopt if the sentence alone has more than `max_length` tokens, including special ones and separators.
std::optional<text::Encoding> encode_in_context(const corpus::TaggedCorpus& corpus, int64_t index,
                                                const ContextOptions& options,
                                                const text::Tokenizer& tokenizer, size_t max_length);

}  // namespace stretto::data
