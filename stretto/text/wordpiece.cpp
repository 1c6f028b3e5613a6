#include "stretto/text/wordpiece.h"

#include <fmt/format.h>

#include "stretto/text/utf8.h"

namespace stretto::text {

WordPiece::WordPiece(Vocabulary vocabulary, WordPieceOptions options, const std::string& name)
    : Model(std::move(vocabulary)),
      continuing_(this->vocabulary().entries().size()),
      options_(std::move(options)),
      unknown_id_(this->vocabulary().required_id(options_.unk_token, "unknown token", name)) {
  const std::string& prefix = options_.continuing_subword_prefix;
  for (const auto& [token, id] : this->vocabulary().entries()) {
    if (token.starts_with(prefix)) continuing_.insert(std::string_view(token).substr(prefix.size()), id);
  }
}

void WordPiece::tokenize(std::string_view text, std::span<const WordRange> words,
                         std::vector<TokenPiece>& out) const {
  for (uint32_t word = 0; word < words.size(); ++word) tokenize_word(text, word, words[word], out);
}

void WordPiece::tokenize_word(std::string_view text, uint32_t word, WordRange range,
                              std::vector<TokenPiece>& out) const {
  const std::string_view bytes = text.substr(range.begin, range.end - range.begin);
  const size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    out.push_back({unknown_id_, range.begin, range.end, word});
  };
  if (bytes.size() > options_.max_input_chars_per_word &&
      count_code_points(bytes) > options_.max_input_chars_per_word) {
    return unknown();
  }
  const StringTable& whole = vocabulary().by_content();
  if (const int32_t id = whole.find(bytes); id >= 0) {
    out.push_back({id, range.begin, range.end, word});
    return;
  }
  for (uint32_t position = range.begin; position < range.end;) {
    const StringTable& table = position == range.begin ? whole : continuing_;
    const StringTable::Match match = table.longest_prefix(text.substr(position, range.end - position));
    if (match.size == 0) return unknown();
    const auto end = position + static_cast<uint32_t>(match.size);
    out.push_back({match.value, position, end, word});
    position = end;
  }
}

std::string WordPiece::description() const {
  return fmt::format("{}\n{}\n{}\n", options_.unk_token, options_.continuing_subword_prefix,
                     options_.max_input_chars_per_word);
}

}  // namespace stretto::text
