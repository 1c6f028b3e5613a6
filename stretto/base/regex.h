#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stretto {

// The only source that includes <regex>, which takes a compiler seconds, is regex.cpp. Both functions return
// the text that matches the ECMAScript `pattern` and the text of each group, empty if it takes no part;
// nullopt if there is no match.
std::optional<std::vector<std::string>> match_whole(const std::string& text, const std::string& pattern);
std::optional<std::vector<std::string>> find_match(const std::string& text, const std::string& pattern);

}  // namespace stretto
