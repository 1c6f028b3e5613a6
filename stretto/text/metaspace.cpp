#include "stretto/text/metaspace.h"

#include <fmt/format.h>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {

void MetaspacePreTokenizer::split(NormalizedText& text, NormalizedText& scratch,
                                  std::vector<WordRange>& words) const {
  scratch.clear();
  const std::string_view bytes = text.bytes;
  size_t part = 0;
  if (options_.split_white_space) {
    for (size_t position = 0; position < bytes.size();) {
      const size_t begin = position;
      if (!is_whitespace(next_code_point(bytes, position))) continue;
      if (begin > part) add_part(text, part, begin, scratch, words);
      part = position;
    }
  }
  if (bytes.size() > part) add_part(text, part, bytes.size(), scratch, words);
  std::swap(text, scratch);
}

// Splits bytes [begin, end) of `text`. REQUIRES: begin < end.
void MetaspacePreTokenizer::add_part(const NormalizedText& text, size_t begin, size_t end,
                                     NormalizedText& out, std::vector<WordRange>& words) const {
  using Prepend = MetaspaceOptions::Prepend;
  const std::string& mark = options_.replacement;
  const std::string_view bytes = std::string_view(text.bytes).substr(begin, end - begin);
  size_t word = out.bytes.size();
  const bool wanted = options_.prepend == Prepend::always ||
                      (options_.prepend == Prepend::first && text.characters[begin] == 0);
  if (wanted && bytes.front() != ' ' && !bytes.starts_with(mark)) out.append(mark, text.characters[begin]);
  const auto close_word = [&] {
    const size_t now = out.bytes.size();
    if (now > word) words.push_back({static_cast<uint32_t>(word), static_cast<uint32_t>(now)});
    word = now;
  };
  for (size_t position = 0; position < bytes.size();) {
    if (bytes[position] == ' ') {
      if (options_.split) close_word();
      out.append(mark, text.characters[begin + position++]);
    } else if (bytes.substr(position).starts_with(mark)) {
      if (options_.split) close_word();
      out.append(text, begin + position, begin + position + mark.size());
      position += mark.size();
    } else {
      size_t next = position + 1;
      while (next < bytes.size() && bytes[next] != ' ' && bytes[next] != mark.front()) ++next;
      out.append(text, begin + position, begin + next);
      position = next;
    }
  }
  close_word();
}

std::string MetaspacePreTokenizer::description() const {
  return fmt::format("metaspace {} {} {} {}\n", options_.replacement, static_cast<int>(options_.prepend),
                     options_.split, options_.split_white_space);
}

}  // namespace stretto::text
