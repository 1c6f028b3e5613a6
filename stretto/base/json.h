#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stretto {

// Parses untrusted JSON of at most 256 MiB and `max_depth` levels, so that a malicious file cannot overflow
// the stack. Throws DataError with `name`, line and column; `first_line`: the line number of the beginning of
// `text`.
nlohmann::json parse_json(std::string_view text, const std::string& name, int max_depth = 64,
                          int64_t first_line = 1);

nlohmann::json read_json(const std::filesystem::path& path);

// The value if it is an integer that fits; else nullopt. json::get() would truncate fractions and wrap
// around.
std::optional<int64_t> whole_number(const nlohmann::json& value);

// Reads a member of an object that may be missing, damaged or of another type: a number, or nullopt; a text,
// or "".
template <class Json>
std::optional<double> number_in(const Json& object, const std::string& name) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->template get<double>())
                                                     : std::nullopt;
}
template <class Json>
std::string text_in(const Json& object, const std::string& name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->template get<std::string>() : "";
}

// Calls `take` for each line of JSON Lines that is an object. Others are skipped: a running process may
// have written half of the last line.
void each_json_line(
    std::string_view text,
    const std::function<void(std::string_view line, const nlohmann::ordered_json& object)>& take);

}  // namespace stretto
