#include "stretto/programs/arguments/checks.h"

#include <cmath>

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::arguments {

std::string a_name(const std::string& text) {
  if (text.empty()) return "expected a name";
  return text.starts_with('-') ? fmt::format("expected a name, found \"{}\"", text) : "";
}

Check whole_number_from(int64_t least, int64_t most) {
  return [least, most](const std::string& text) -> std::string {
    const auto number = parse_int(text);
    if (number && *number >= least && *number <= most) return "";
    return fmt::format("\"{}\" is not a whole number from {} to {}", text, least, most);
  };
}

Check number_from(int64_t least, int64_t most) {
  return [least, most](const std::string& text) -> std::string {
    const auto number = parse_double(text);
    if (number && *number >= static_cast<double>(least) && *number <= static_cast<double>(most)) return "";
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
}

std::string a_number(const std::string& text) {
  return parse_double(text) ? "" : fmt::format("\"{}\" is not a number", text);
}

std::string a_number_above_zero(const std::string& text) {
  const auto number = parse_double(text);
  if (number && std::isfinite(*number) && *number > 0) return "";
  return fmt::format("\"{}\" is not a number above 0", text);
}

std::string a_share(const std::string& text) {
  const auto number = parse_double(text);
  if (number && *number > 0 && *number <= 1) return "";
  return fmt::format("\"{}\" is not a number above 0, at most 1", text);
}

}  // namespace stretto::arguments
