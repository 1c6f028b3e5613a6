#include <algorithm>
#include <cctype>
#include <type_traits>

#include <fmt/ranges.h>

#include "stretto/base/strings.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/variables.h"

namespace stretto::settings {
namespace {

struct ToJson {
  nlohmann::ordered_json operator()(std::monostate) const { return nullptr; }
  nlohmann::ordered_json operator()(const std::filesystem::path* value) const { return value->string(); }
  nlohmann::ordered_json operator()(FileOrSection* value) const {
    if (value->is_section()) return value->section;
    return value->file.string();
  }
  nlohmann::ordered_json operator()(const NameSlot& slot) const {
    if (const auto name = slot.get()) return *name;
    return nullptr;
  }
  template <class T>
  nlohmann::ordered_json operator()(T* value) const {
    return *value;
  }
  template <class T>
  nlohmann::ordered_json operator()(std::optional<T>* value) const {
    if (!value->has_value()) return nullptr;
    return (*this)(&**value);
  }
};

// Whether every YAML reader reads unquoted `text` as a string.
bool is_plain_text(const std::string& text) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '/'; };
  const auto is_inner = [&](unsigned char c) { return is_word(c) || c == '-' || c == '.' || c == '+'; };
  if (text.empty() || !is_word(static_cast<unsigned char>(text[0]))) return false;
  if (!std::all_of(text.begin(), text.end(), is_inner) || parse_double(text)) return false;
  const std::vector<std::string> reserved = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  return std::ranges::find(reserved, lower_case(text)) == reserved.end();
}

// The shortest digits that read back as the same number, in a form that YAML 1.1 readers also parse as a
// number.
std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

std::string yaml_scalar(const nlohmann::ordered_json& value) {
  if (value.is_number_float()) return number_text(value.get<double>());
  if (!value.is_string()) return value.dump();
  std::string text = escape_variables(value.get<std::string>());
  if (is_plain_text(text)) return text;
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string yaml_value(const nlohmann::ordered_json& value) {
  if (!value.is_structured()) return yaml_scalar(value);
  std::vector<std::string> items;
  if (value.is_array()) {
    for (const auto& item : value) items.push_back(yaml_value(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  for (const auto& [key, item] : value.items())
    items.push_back(fmt::format("{}: {}", yaml_scalar(key), yaml_value(item)));
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

}  // namespace

nlohmann::ordered_json value_of(const Field& setting) { return std::visit(ToJson{}, setting.slot); }

std::string to_yaml(const std::vector<Field>& fields) {
  std::string document;
  for (const Field& field : fields) {
    if (field.is_section() && field.rule.in_use()) {
      const std::string section = to_yaml(field.fields);
      if (section.empty()) continue;
      document += field.key + ":\n";
      for (const std::string_view line : split(trim(section), '\n')) document += fmt::format("  {}\n", line);
    } else if (!field.is_section() && field.rule.in_use()) {
      const auto value = value_of(field);
      // NOLINTNEXTLINE(readability-container-size-empty): no JSON string is empty()
      if (!value.is_null() && value != "") document += fmt::format("{}: {}\n", field.key, yaml_value(value));
    }
  }
  return document;
}

}  // namespace stretto::settings
