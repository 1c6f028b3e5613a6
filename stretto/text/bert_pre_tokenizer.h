#pragma once

#include <cstddef>
#include <string_view>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {

// Calls on_word(begin, end) for each word of `text` from byte `from` on, in order, as Hugging Face's
// BertPreTokenizer splits it: white space separates and is dropped, each punctuation character is a word of
// its own. REQUIRES: valid UTF-8.
template <class OnWord>
void split_words(std::string_view text, size_t from, OnWord&& on_word) {
  size_t word = from;
  for (size_t position = from; position < text.size();) {
    const size_t begin = position;
    const char32_t c = next_code_point(text, position);
    // Letters, digits and all that no class asks for are the common case.
    if (c < 0x80 && ((c | 0x20) - 'a' < 26 || c - '0' < 10)) continue;
    const bool space = is_whitespace(c);
    if (!space && !is_punctuation(c)) continue;
    if (begin > word) on_word(word, begin);
    if (!space) on_word(begin, position);
    word = position;
  }
  if (text.size() > word) on_word(word, text.size());
}

}  // namespace stretto::text
