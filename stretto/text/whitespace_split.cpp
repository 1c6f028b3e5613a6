#include "stretto/text/whitespace_split.h"

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {

void WhitespaceSplit::split(NormalizedText& text, NormalizedText& /*scratch*/,
                            std::vector<WordRange>& words) const {
  split_unchanged(text.bytes, words);
}

bool WhitespaceSplit::split_unchanged(std::string_view bytes, std::vector<WordRange>& words) const {
  size_t word = 0;
  const auto close = [&](size_t end) {
    if (end > word) words.push_back({static_cast<uint32_t>(word), static_cast<uint32_t>(end)});
  };
  for (size_t position = 0; position < bytes.size();) {
    const size_t begin = position;
    if (!is_whitespace(next_code_point(bytes, position))) continue;
    close(begin);
    word = position;
  }
  close(bytes.size());
  return true;
}

}  // namespace stretto::text
