#include "stretto/text/vocabulary.h"

#include "stretto/base/error.h"

namespace stretto::text {
namespace {

// Ids index a table, so a huge one in a damaged file must not cause an allocation of gigabytes.
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

Vocabulary::Vocabulary(std::vector<VocabularyEntry> entries, const std::string& name)
    : entries_(std::move(entries)), by_content_(entries_.size()) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    check_entry(entries_[i], name);
    const auto& [token, id] = entries_[i];
    if (id >= id_limit()) by_id_.resize(id + 1, -1);
    if (by_id_[id] >= 0) {
      throw DataError("{}: the tokens \"{}\" and \"{}\" have the same id {}; expected one token per id", name,
                      entries_[by_id_[id]].token, token, id);
    }
    by_id_[id] = static_cast<int32_t>(i);
    by_content_.insert(token, id);
  }
}

std::optional<int32_t> Vocabulary::id(std::string_view token) const {
  const int32_t id = by_content_.find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string_view> Vocabulary::token(int32_t id) const {
  if (id < 0 || id >= id_limit() || by_id_[id] < 0) return std::nullopt;
  return entries_[by_id_[id]].token;
}

int32_t Vocabulary::required_id(std::string_view token, const char* role, const std::string& name) const {
  if (const auto found = id(token)) return *found;
  throw DataError("{}: the vocabulary of {} tokens lacks its {} \"{}\"", name, entries_.size(), role, token);
}

}  // namespace stretto::text
