#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/strings.h"
#include "stretto/settings/describe.h"
#include "stretto/settings/parse_value.h"

namespace stretto::settings {
namespace {

constexpr size_t line_width = 100;

// `text` wrapped at spaces, each line indented by `indent` spaces.
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
std::string accepted_values(const Field& setting, bool under_its_condition) {
  const Rule& rule = setting.rule;
  std::string text =
      rule.choices.empty() ? type_name(setting) : fmt::format("{}", fmt::join(rule.choices, " | "));
  if (!rule.form.empty()) text = rule.form;
  const std::string range = rule.range_text();
  if (!range.empty()) text += ", " + range;
  if (rule.condition && !under_its_condition) {
    text += fmt::format("; only with {} {}", rule.condition->key, fmt::join(rule.condition->values, " or "));
  }
  return text + default_text(setting);
}

// "AdamW" if settings in `fields` have several declarations, selected by the type AdamW for this one; else
// "".
std::string group_of(const Field& setting, const std::vector<Field>& fields) {
  const auto& condition = setting.rule.condition;
  if (!condition || declarations(fields, condition->key).empty()) return "";
  const auto decides = [&](const Field& other) {
    return other.rule.condition && other.rule.condition->key == condition->key &&
           declarations(fields, other.key).size() > 1;
  };
  return std::ranges::any_of(fields, decides) ? fmt::format("{}", fmt::join(condition->values, " or ")) : "";
}

// Prints the settings of a section before its subsections. Settings that depend on a type are grouped by it.
std::string section_help(const std::vector<Field>& fields, const std::string& prefix) {
  std::string settings;
  std::string group;
  std::string sections;
  for (const Field& field : fields) {
    if (field.is_section()) {
      sections += fmt::format("\n{}{}: {}\n", prefix, field.key, field.help);
      sections += section_help(field.fields, prefix + field.key + ".");
    } else {
      const std::string own_group = group_of(field, fields);
      if (own_group != group && !own_group.empty())
        settings += fmt::format("\n with {}{}: {}\n", prefix, field.rule.condition->key, own_group);
      group = own_group;
      settings += fmt::format("  {}{}\n", prefix, field.key);
      settings += wrap(fmt::format("{} ({})", field.help, accepted_values(field, !group.empty())), 6);
    }
  }
  return settings + sections;
}

}  // namespace

std::string to_help(const std::vector<Field>& fields) { return section_help(fields, ""); }

std::string to_help(const std::vector<Field>& fields, const std::string& path) {
  const std::vector<Field>* level = &fields;
  std::string prefix;
  const auto keys = split(path, '.');
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto field = std::ranges::find(*level, keys[i], &Field::key);
    if (field == level->end()) return "";
    if (i + 1 == keys.size()) {
      std::vector<Field> found;
      for (const Field* declaration : declarations(*level, keys[i])) found.push_back(*declaration);
      return section_help(found, prefix);
    }
    level = &field->fields;
    prefix += field->key + ".";
  }
  return "";
}

std::string sections_help(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    if (field.is_section()) text += fmt::format("  {:<21}{}\n", field.key, field.help);
  }
  return text;
}

std::vector<std::string> all_names(const std::vector<Field>& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (declarations(fields, field.key)[0] == &field) names.push_back(field.key);
    for (const std::string& inner : all_names(field.fields)) names.push_back(field.key + "." + inner);
  }
  return names;
}

}  // namespace stretto::settings
