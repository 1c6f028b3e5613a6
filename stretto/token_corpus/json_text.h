#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stretto::token_corpus {

// The text under `key` of a JSON object, several times as fast as parsing it: `buffer`, or nothing where
// `json` is not valid, holds the key not once or under it no text, or is nested deeper than 64 levels. A
// parser then has the reason.
std::optional<std::string_view> find_json_text(std::string_view json, std::string_view key,
                                               std::string& buffer);

}  // namespace stretto::token_corpus
