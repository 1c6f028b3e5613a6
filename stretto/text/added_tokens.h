#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/text/string_table.h"

namespace stretto::text {

// A token that is found in the text itself, before any word is cut. Fields as in tokenizer.json.
struct AddedToken {
  std::string content;
  bool single_word = false;  // only where no word character is next to it
  bool lstrip = false;       // takes the white space to its left along
  bool rstrip = false;       // and to its right
  bool normalized = true;    // compared after normalisation, else with the raw text
  bool special = false;
  std::optional<int32_t> id_in_file = {};  // only to be checked: ids follow from the order
};

struct AddedTokenPattern {
  AddedToken token;  // token.content is what is searched for
  int32_t id;
};

struct AddedTokenMatch {
  size_t begin;  // bytes
  size_t end;
  int32_t id;
};

// Finds added tokens in a text: the leftmost, of those the longest, never overlapping.
class AddedTokenMatcher {
 public:
  // Of two patterns with one content the first counts; an empty content is never found.
  explicit AddedTokenMatcher(std::vector<AddedTokenPattern> patterns);
  AddedTokenMatcher(AddedTokenMatcher&&) = default;  // the table views the patterns: movable, not copyable
  AddedTokenMatcher& operator=(AddedTokenMatcher&&) = default;

  // Puts the matches of `text` into `matches`, in order. REQUIRES: valid UTF-8.
  void find(std::string_view text, std::vector<AddedTokenMatch>& matches) const;

 private:
  std::vector<AddedTokenPattern> patterns_;
  StringTable by_content_;          // index into patterns_
  std::array<bool, 256> begins_{};  // by the first byte of a pattern
};

}  // namespace stretto::text
