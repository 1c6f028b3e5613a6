#include "stretto/text/added_tokens.h"

#include <algorithm>

#include "stretto/text/unicode.h"
#include "stretto/text/utf8.h"

namespace stretto::text {
namespace {

// The beginning of the code point that ends before `position`.
size_t step_back(std::string_view text, size_t position) {
  do {
    --position;
  } while (!is_lead_byte(text[position]));
  return position;
}

char32_t code_point_before(std::string_view text, size_t position) {
  size_t begin = step_back(text, position);
  return next_code_point(text, begin);
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_character(code_point_before(text, begin))) return false;
  return end == text.size() || !is_word_character(next_code_point(text, end));
}

size_t skip_space_left(std::string_view text, size_t position) {
  while (position > 0 && is_whitespace(code_point_before(text, position)))
    position = step_back(text, position);
  return position;
}

size_t skip_space_right(std::string_view text, size_t position) {
  for (size_t next = position; position < text.size(); position = next) {
    if (!is_whitespace(next_code_point(text, next))) break;
  }
  return position;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedTokenPattern> patterns)
    : patterns_(std::move(patterns)), by_content_(patterns_.size()) {
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const std::string& content = patterns_[i].token.content;
    if (content.empty() || by_content_.find(content) >= 0) continue;
    by_content_.insert(content, static_cast<int32_t>(i));
    begins_[static_cast<unsigned char>(content[0])] = true;
  }
}

void AddedTokenMatcher::find(std::string_view text, std::vector<AddedTokenMatch>& matches) const {
  matches.clear();
  if (patterns_.empty()) return;
  size_t taken = 0;  // the end of the last match, including white space
  for (size_t position = 0; position < text.size();) {
    StringTable::Match match;
    if (begins_[static_cast<unsigned char>(text[position])])
      match = by_content_.longest_prefix(text.substr(position));
    if (match.size == 0) {
      ++position;
      continue;
    }
    const auto& [token, id] = patterns_[match.value];
    size_t begin = position;
    size_t end = position + match.size;
    position = end;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(skip_space_left(text, begin), taken);
    if (token.rstrip) end = skip_space_right(text, end);
    matches.push_back({begin, end, id});
    taken = end;
  }
}

}  // namespace stretto::text
