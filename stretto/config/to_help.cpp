#include <fmt/ranges.h>

#include "stretto/base/strings.h"
#include "stretto/config/describe.h"
#include "stretto/config/parse_value.h"

namespace stretto::config {
namespace {

constexpr size_t line_width = 100;

// `text` broken at spaces, each line after `indent` spaces.
std::string wrap(const std::string& text, size_t indent) {
  std::string result;
  std::string line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > line_width) {
      result += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  return result + std::string(indent, ' ') + line + "\n";
}

std::string default_text(const Field& setting) {
  const auto value = value_of(setting);
  if (value.is_null()) return "";
  return fmt::format("; default {}", value.is_string() ? value.get<std::string>() : value.dump());
}

// "number, at least 0; only with type AdamW; default 0.01"
std::string accepted_values(const Field& setting) {
  const Rule& rule = setting.rule;
  std::string text =
      rule.choices.empty() ? type_name(setting) : fmt::format("{}", fmt::join(rule.choices, " | "));
  const std::string range = rule.range_text();
  if (!range.empty()) text += ", " + range;
  if (rule.condition) {
    text += fmt::format("; only with {} {}", rule.condition->key, fmt::join(rule.condition->values, " or "));
  }
  return text + default_text(setting);
}

// A section's own settings come before the sections inside it.
std::string section_help(const std::vector<Field>& fields, const std::string& prefix) {
  std::string settings;
  std::string sections;
  for (const Field& field : fields) {
    if (field.is_section()) {
      sections += fmt::format("\n{}{}: {}\n", prefix, field.key, field.help);
      sections += section_help(field.fields, prefix + field.key + ".");
    } else {
      settings += fmt::format("  {}{}\n", prefix, field.key);
      settings += wrap(fmt::format("{} ({})", field.help, accepted_values(field)), 6);
    }
  }
  return settings + sections;
}

}  // namespace

std::string to_help(const std::vector<Field>& fields) { return section_help(fields, ""); }

}  // namespace stretto::config
