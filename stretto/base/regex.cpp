#include "stretto/base/regex.h"

#include <regex>

namespace stretto {
namespace {

std::optional<std::vector<std::string>> groups_of(bool matches, const std::smatch& match) {
  if (!matches) return std::nullopt;
  return std::vector<std::string>(match.begin(), match.end());
}

}  // namespace

std::optional<std::vector<std::string>> match_whole(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return groups_of(std::regex_match(text, match, std::regex(pattern)), match);
}

std::optional<std::vector<std::string>> find_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return groups_of(std::regex_search(text, match, std::regex(pattern)), match);
}

}  // namespace stretto
