#include "stretto/settings/variables.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "stretto/base/error.h"

namespace stretto::settings {
namespace {

bool is_variable_name(std::string_view name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), allowed);
}

// `inside`: the text between "${" and "}".
std::string variable_value(std::string_view inside) {
  const size_t separator = inside.find(":-");
  const std::string name(inside.substr(0, separator));
  if (!is_variable_name(name) || inside.find("${") != std::string_view::npos) {
    throw ConfigError(
        "\"${{{}}}\" cannot be expanded; write ${{NAME}} or ${{NAME:-default}}, without nesting", inside);
  }
  const char* value = std::getenv(name.c_str());
  const bool has_default = separator != std::string_view::npos;
  if (has_default && (value == nullptr || *value == '\0')) return std::string(inside.substr(separator + 2));
  if (value == nullptr) {
    throw UnsetVariableError(
        fmt::format("the environment variable {0} is not set; set it, or write ${{{0}:-default}}", name), "");
  }
  return value;
}

}  // namespace

std::string expand_variables(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    if (text.starts_with("$${")) {
      result += "${";
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const size_t end = text.find('}');
      if (end == std::string_view::npos) throw ConfigError("\"{}\" has a \"${{\" without its \"}}\"", text);
      result += variable_value(text.substr(2, end - 2));
      text.remove_prefix(end + 1);
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

std::string escape_variables(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("${")) result += '$';
    result += text[i];
  }
  return result;
}

}  // namespace stretto::settings
