#pragma once

#include <optional>
#include <random>
#include <string>

#include <nlohmann/json.hpp>

namespace stretto::fuzz {

// Makes one to four random changes to values in `json`: numbers at the limits of their types, other texts and
// types, a copy of another value, a member or element removed or repeated.
void change_json(nlohmann::ordered_json& json, std::mt19937_64& random);

// Parses `text` as JSON; nullopt if it is invalid or nested too deeply.
std::optional<nlohmann::ordered_json> try_parse(const std::string& text);

// Serialises `json`; the result is valid UTF-8 even if texts are not.
std::string dump(const nlohmann::ordered_json& json);

// A mutate_fields() for targets whose input is a JSON text.
std::string mutate_json(const std::string& text, std::mt19937_64& random);

}  // namespace stretto::fuzz
