#include "stretto/text/wordpiece.h"

#include "stretto/base/error.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// Ids index a table, so a wild one in a broken file must not ask for gigabytes.
constexpr int32_t largest_id = (1 << 23) - 1;

void check_entry(const VocabularyEntry& entry, const std::string& name) {
  if (entry.token.size() > longest_token) {
    throw DataError("{}: the token with the id {} has {} bytes; expected at most {}", name, entry.id,
                    entry.token.size(), longest_token);
  }
  if (entry.id < 0 || entry.id > largest_id) {
    throw DataError("{}: the id {} of token \"{}\" is not between 0 and {}", name, entry.id, entry.token,
                    largest_id);
  }
}

}  // namespace

WordPiece::WordPiece(std::vector<VocabularyEntry> vocabulary, WordPieceOptions options,
                     const std::string& name)
    : vocabulary_(std::move(vocabulary)),
      whole_(vocabulary_.size()),
      continuing_(vocabulary_.size()),
      options_(std::move(options)) {
  const std::string& prefix = options_.continuing_subword_prefix;
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    check_entry(vocabulary_[i], name);
    const auto& [token, id] = vocabulary_[i];
    if (id >= id_limit()) by_id_.resize(id + 1, -1);
    if (by_id_[id] >= 0) {
      throw DataError("{}: the tokens \"{}\" and \"{}\" have the same id {}; expected one token an id", name,
                      vocabulary_[by_id_[id]].token, token, id);
    }
    by_id_[id] = static_cast<int32_t>(i);
    whole_.insert(token, id);
    if (token.starts_with(prefix)) continuing_.insert(std::string_view(token).substr(prefix.size()), id);
  }
  const auto unknown = id(options_.unk_token);
  if (!unknown) {
    throw DataError("{}: the vocabulary of {} tokens lacks its unknown token \"{}\"", name,
                    vocabulary_.size(), options_.unk_token);
  }
  unknown_id_ = *unknown;
}

void WordPiece::tokenize(std::string_view text, size_t begin, size_t end,
                         std::vector<WordPieceToken>& out) const {
  const std::string_view word = text.substr(begin, end - begin);
  const size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    out.push_back({unknown_id_, begin, end});
  };
  if (word.size() > options_.max_input_chars_per_word &&
      count_code_points(word) > options_.max_input_chars_per_word) {
    return unknown();
  }
  if (const int32_t id = whole_.find(word); id >= 0) {
    out.push_back({id, begin, end});
    return;
  }
  for (size_t position = begin; position < end;) {
    const StringTable& table = position == begin ? whole_ : continuing_;
    const StringTable::Match match = table.longest_prefix(text.substr(position, end - position));
    if (match.size == 0) return unknown();
    out.push_back({match.value, position, position + match.size});
    position += match.size;
  }
}

std::optional<int32_t> WordPiece::id(std::string_view token) const {
  const int32_t id = whole_.find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string_view> WordPiece::token(int32_t id) const {
  if (id < 0 || id >= id_limit() || by_id_[id] < 0) return std::nullopt;
  return vocabulary_[by_id_[id]].token;
}

}  // namespace stretto::text
