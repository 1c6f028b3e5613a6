#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/string_table.h"

namespace stretto::text {

struct VocabularyEntry {
  std::string token;
  int32_t id;
};

// The maximum size of a token in bytes: larger than any in use, and small enough to keep the search for the
// longest match cheap.
inline constexpr size_t longest_token = 4096;

// The tokens of a model, by id and by content.
class Vocabulary {
 public:
  // Throws DataError, naming `name`, if an id is out of bounds or belongs to two tokens, or a token is longer
  // than longest_token.
  Vocabulary(std::vector<VocabularyEntry> entries, const std::string& name);
  Vocabulary(Vocabulary&&) = default;  // the table views the entries' strings: movable, not copyable
  Vocabulary& operator=(Vocabulary&&) = default;

  std::optional<int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;

  // Like `id`, but throws DataError, naming `name` and `role`, if there is none.
  int32_t required_id(std::string_view token, const char* role, const std::string& name) const;

  const std::vector<VocabularyEntry>& entries() const { return entries_; }
  const StringTable& by_content() const { return by_content_; }             // ids
  size_t size() const { return by_content_.size(); }                        // the number of distinct tokens
  int32_t id_limit() const { return static_cast<int32_t>(by_id_.size()); }  // the largest id plus one

 private:
  std::vector<VocabularyEntry> entries_;
  std::vector<int32_t> by_id_;  // index into entries_, or -1
  StringTable by_content_;
};

}  // namespace stretto::text
