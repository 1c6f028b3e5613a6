#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stretto {

// Parses JSON from outside: at most `max_depth` levels deep, so that a hostile file cannot overflow the stack, and of
// 256 MiB.
// Throws DataError with `name`, line and column; `first_line` is the number of the line that `text` begins on.
nlohmann::json parse_json(std::string_view text, const std::string& name, int max_depth = 64,
                          int64_t first_line = 1);

nlohmann::json read_json(const std::filesystem::path& path);

// The value if it is written as a whole number that fits. json::get() would truncate fractions and wrap around.
std::optional<int64_t> whole_number(const nlohmann::json& value);

}  // namespace stretto
