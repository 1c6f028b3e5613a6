#include "stretto/text/word_level.h"

namespace stretto::text {

WordLevel::WordLevel(Vocabulary vocabulary, std::string unk_token, const std::string& name)
    : Model(std::move(vocabulary)),
      unk_token_(std::move(unk_token)),
      unknown_id_(this->vocabulary().required_id(unk_token_, "unknown token", name)) {}

void WordLevel::tokenize(std::string_view text, std::span<const WordRange> words,
                         std::vector<TokenPiece>& out) const {
  for (uint32_t word = 0; word < words.size(); ++word) {
    const auto [begin, end] = words[word];
    const int32_t id = vocabulary().by_content().find(text.substr(begin, end - begin));
    out.push_back({id >= 0 ? id : unknown_id_, begin, end, word});
  }
}

}  // namespace stretto::text
