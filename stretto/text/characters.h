#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stretto::text {

// The character vocabulary of a model, numbered from 1 in the order of a text; 0 is any other character.
class Characters {
 public:
  Characters() = default;
  // `known`: the characters. Invalid UTF-8 counts as U+FFFD; duplicates are ignored.
  explicit Characters(std::string_view known);

  bool empty() const { return ids_.empty(); }

  // Appends the ids of the characters of `text` to `out`.
  void append_ids(std::string_view text, std::vector<int32_t>& out) const;

 private:
  std::unordered_map<char32_t, int32_t> ids_;
};

// The code points [begin, end) of `text`; invalid UTF-8 counts as U+FFFD.
std::string slice_code_points(std::string_view text, uint32_t begin, uint32_t end);

}  // namespace stretto::text
