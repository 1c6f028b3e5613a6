#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/string_table.h"

namespace stretto::text {

// A token that is matched in the text itself, before pre-tokenization. The fields are those of
// tokenizer.json.
struct AddedToken {
  std::string content;
  bool single_word = false;  // matches only without adjacent word characters
  bool lstrip = false;       // the match includes white space to its left
  bool rstrip = false;       // the match includes white space to its right
  bool normalized = true;    // matched in normalised text, else in the raw text
  bool special = false;
  std::optional<int32_t> id_in_file = {};  // for checks only: ids follow from the order
};

struct AddedTokenPattern {
  AddedToken token;  // token.content is the search pattern
  int32_t id;
};

struct AddedTokenMatch {
  size_t begin;  // bytes
  size_t end;
  int32_t id;
};

// Finds added tokens in a text: leftmost-longest matches without overlaps.
class AddedTokenMatcher {
 public:
  // The first of several patterns with the same content is used; an empty content is never found.
  explicit AddedTokenMatcher(std::vector<AddedTokenPattern> patterns);
  AddedTokenMatcher(AddedTokenMatcher&&) = default;  // the table views the patterns: movable, not copyable
  AddedTokenMatcher& operator=(AddedTokenMatcher&&) = default;

  // Writes the matches in `text` to `matches`, in order. REQUIRES: valid UTF-8.
  void find(std::string_view text, std::vector<AddedTokenMatch>& matches) const;

 private:
  std::vector<AddedTokenPattern> patterns_;
  StringTable by_content_;          // index into patterns_
  std::array<bool, 256> begins_{};  // by the first byte of a pattern
};

}  // namespace stretto::text
