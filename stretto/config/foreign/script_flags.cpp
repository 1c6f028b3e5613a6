#include "stretto/config/foreign/script_flags.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::foreign {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_true(const std::string& flag, const std::string& value) {
  const std::string lower = lower_case(value);
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "t" || lower == "y") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "f" || lower == "n") return false;
  throw ConfigError("--{}: found \"{}\"; expected true or false", flag, value);
}

std::string quoted(const std::string& value) {
  if (parse_double(value)) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
    if (c == '$') text += '$';
  }
  return text + "\"";
}

void RecipeText::set(const std::string& setting, const std::string& value) {
  const size_t dot = setting.find('.');
  const std::string section = dot == std::string::npos ? "" : setting.substr(0, dot);
  const std::string key = dot == std::string::npos ? setting : setting.substr(dot + 1);
  auto found = std::ranges::find(sections_, section, &Section::name);
  if (found == sections_.end()) found = sections_.insert(found, {section, {}});
  const auto line = std::ranges::find(found->lines, key, &std::pair<std::string, std::string>::first);
  if (line != found->lines.end()) {
    line->second = value;
  } else {
    found->lines.emplace_back(key, value);
  }
}

std::string RecipeText::text() const {
  std::string yaml;
  for (const Section& section : sections_) {
    if (!section.name.empty()) yaml += section.name + ":\n";
    for (const auto& [key, value] : section.lines)
      yaml += fmt::format("{}{}: {}\n", section.name.empty() ? "" : "  ", key, value);
  }
  return yaml;
}

std::string ScriptState::value(const char* flag, const std::string& unset) const {
  const auto found = given.find(flag);
  return found == given.end() ? unset : found->second;
}

Flag setting(std::string name, const std::string& setting) {
  return {std::move(name), false, [setting](ScriptState& state, const std::string& value) {
            state.recipe.set(setting, quoted(value));
          }};
}

Flag boolean(const std::string& name, const std::string& setting) {
  return {name, true, [name, setting](ScriptState& state, const std::string& value) {
            state.recipe.set(setting, is_true(name, value) ? "true" : "false");
          }};
}

Flag ignored(const std::string& name, bool is_boolean, const std::string& reason) {
  return {name, is_boolean, [name, reason](ScriptState& state, const std::string&) {
            state.plan.notes.push_back(fmt::format("--{} has no meaning here: {}", name, reason));
          }};
}

Flag refused(const std::string& name, bool is_boolean, const std::vector<std::string>& harmless,
             const std::string& reason) {
  return {name, is_boolean, [=](ScriptState&, const std::string& value) {
            if (std::ranges::find(harmless, value) == harmless.end())
              throw ConfigError("--{} {}: {}", name, value, reason);
          }};
}

Flag read_later(const std::string& name, bool is_boolean) {
  return {name, is_boolean, [](ScriptState&, const std::string&) {}};
}

const Flag& find_flag(const std::vector<Flag>& flags, const std::string& name) {
  std::vector<std::string> known;
  for (const Flag& flag : flags) {
    if (flag.name == name) return flag;
    known.push_back(flag.name);
  }
  throw ConfigError("--{} is not a flag of this script that stretto knows{}", name,
                    did_you_mean(name, known));
}

std::map<std::string, std::string> parse_flags(const std::vector<Flag>& flags,
                                               const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) throw ConfigError("\"{}\" stands behind no flag; flags begin with --", word);
    const size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::ranges::replace(name, '-', '_');
    const Flag& flag = find_flag(flags, name);
    const bool has_next = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
    std::string value = "true";
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (has_next) {
      value = arguments[++i];
    } else if (!flag.boolean) {
      throw ConfigError("--{} has no value", name);
    }
    given[name] = value;
  }
  return given;
}

void require_flag(const ScriptState& state, const char* flag, const char* why) {
  if (!state.has(flag)) throw ConfigError("--{} is required {}", flag, why);
}

}  // namespace stretto::foreign
