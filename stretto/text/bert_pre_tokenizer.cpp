#include "stretto/text/bert_pre_tokenizer.h"

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {

void BertPreTokenizer::split(NormalizedText& text, NormalizedText& /*scratch*/,
                             std::vector<WordRange>& words) const {
  split_unchanged(text.bytes, words);
}

bool BertPreTokenizer::split_unchanged(std::string_view bytes, std::vector<WordRange>& words) const {
  const auto add = [&](size_t begin, size_t end) {
    words.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  };
  size_t word = 0;
  for (size_t position = 0; position < bytes.size();) {
    const size_t begin = position;
    const char32_t c = next_code_point(bytes, position);
    // ASCII letters and digits are the common case.
    if (c < 0x80 && ((c | 0x20) - 'a' < 26 || c - '0' < 10)) continue;
    const bool space = is_whitespace(c);
    if (!space && !is_punctuation(c)) continue;
    if (begin > word) add(word, begin);
    if (!space) add(begin, position);
    word = position;
  }
  if (bytes.size() > word) add(word, bytes.size());
  return true;
}

}  // namespace stretto::text
