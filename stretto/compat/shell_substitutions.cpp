#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/shell_arithmetic.h"
#include "stretto/compat/shell_expansion.h"
#include "stretto/compat/shell_names.h"

// What "$NAME", "${...}", "$(...)" and "$((...))" in a word stand for.
namespace stretto::compat {

// Returns what "$NAME", "${...}", "$(...)", "$((...))" or "`...`" stands for.
ShellVariables::Value ShellVariables::substitution(std::string_view text) {
  if (text.starts_with('`')) return output_of(text.substr(1, text.size() - 2));
  if (text.starts_with("$((") && text.ends_with("))")) return arithmetic(text.substr(3, text.size() - 5));
  if (text.starts_with("$(")) return output_of(text.substr(2, text.size() - 3));
  if (text.starts_with("${")) return braces(text.substr(2, text.size() - 3));
  if (text.size() == 1) return {{"$"}};
  const std::string name(text.substr(1));
  if (name_size(name) > 0) {
    Value value = look_up(name);
    if (value.items.size() > 1) value.items.resize(1);
    return value;
  }
  return {{mark(fmt::format("line {}: {} is known when the script runs", line_, text))}};
}

// "; A is 8, B is 2 (line 3: C is 4, D is 2)"; "": there are no variables in it.
std::string ShellVariables::values_of(std::string_view inside) const {
  std::string texts;
  for (const std::string& name : names_in(inside)) {
    const std::string value = look_up(name).text();
    const bool is_known = unknown_in(value).empty();
    texts += fmt::format("{}{} is {}", texts.empty() ? "; " : ", ", name,
                         value.empty() ? "not set"
                         : is_known    ? short_text(value)
                                       : "not known");
    if (const auto origin = origins_.find(name); origin != origins_.end()) texts += origin->second;
  }
  return texts;
}

ShellVariables::Value ShellVariables::arithmetic(std::string_view inside) {
  for (const std::string& name : names_in(inside)) {  // bash reads another text as the name of a variable
    const std::string value(trim(look_up(name).text()));
    if (!value.empty() && name_size(value) == value.size() && !look_up(value).is_set())
      throw ConfigError("$(({})): {} is \"{}\"; expected a whole number", inside, name, short_text(value));
  }
  const std::string text = whole_text(inside, /*is_quoted=*/true).value_or("0");
  if (!unknown_in(text).empty()) return {{mark(unknown_in(text))}};
  std::string unknown;
  const auto variable = [&](const std::string& name) -> int64_t {
    const std::string value(trim(look_up(name).text()));
    if (value.empty()) return 0;
    if (const std::string why = unknown_in(value); !why.empty()) {
      unknown = why;
      return 1;
    }
    const auto number = parse_int(value);
    if (!number) throw ConfigError("{} is \"{}\"; expected a whole number", name, value);
    return *number;
  };
  ShellNumber number;
  try {
    number = shell_arithmetic(text, variable);
  } catch (const ConfigError& error) {
    if (text == inside) throw;
    throw ConfigError("$(({})): {}", inside, error.what());
  }
  if (!unknown.empty()) return {{mark(unknown)}};
  const std::string values = values_of(inside);
  if (number.divides_by_zero)
    throw ConfigError(
        "$(({})) divides by 0{}; give other values as NAME=VALUE, or the number of hosts by --nodes", inside,
        values);
  if (!number.rounded.empty())
    rounded_.push_back({fmt::format("{}: $(({})) is {}, as {} is rounded{}", line_, inside, number.value,
                                    number.rounded, values),
                        number.value});
  return {{std::to_string(number.value)}};
}

// The folder of the script is the only output that is known.
ShellVariables::Value ShellVariables::output_of(std::string_view command) {
  const bool is_own_folder =
      command.find("BASH_SOURCE") != std::string_view::npos ||
      (command.find("dirname") != std::string_view::npos && command.find("$0") != std::string_view::npos);
  if (is_own_folder) return {{folder_.string()}};
  return {{mark(fmt::format("line {}: {} is not run", line_, short_text(trim(command))))}};
}

ShellVariables::Value ShellVariables::braces(std::string_view inside) {
  const size_t size = name_size(inside);
  if (size == 0) return not_read(fmt::format("${{{}}}", inside));
  const std::string name(inside.substr(0, size));
  std::string_view rest = inside.substr(size);
  Value value = look_up(name);
  if (rest.starts_with('[')) {
    const size_t close = std::min(rest.size(), rest.find(']'));
    const std::string_view index = rest.substr(1, close - 1);
    rest = rest.substr(std::min(rest.size(), close + 1));
    const bool is_known =
        std::ranges::all_of(value.items, [&](const std::string& item) { return unknown_in(item).empty(); });
    if (index != "@" && index != "*" && is_known) {
      const auto number = parse_int(index);
      if (!number) return not_read(fmt::format("${{{}}}", inside));
      const bool exists = *number >= 0 && static_cast<size_t>(*number) < value.items.size();
      value.items = exists ? std::vector<std::string>{value.items[static_cast<size_t>(*number)]}
                           : std::vector<std::string>{};
    }
  } else if (value.items.size() > 1) {
    value.items.resize(1);
  }
  if (rest.empty()) return value;
  const bool also_empty = rest.starts_with(':');
  if (also_empty) rest.remove_prefix(1);
  const bool has = value.is_set() && (!also_empty || !value.text().empty());
  const char kind = rest.empty() ? '\0' : rest[0];
  const auto other = [&] { return Value{{expand_whole(rest.substr(1)).text}}; };
  if (kind == '-') return has ? value : other();
  if (kind == '+') return has ? other() : Value{};
  if (kind == '=') {
    if (!has) value = values_[name] = other();
    return value;
  }
  if (kind == '?') {
    if (!has)
      throw ConfigError("{} is not set{}{}; give it as {}=VALUE", name, rest.size() > 1 ? ": " : "",
                        rest.substr(1), name);
    return value;
  }
  return not_read(fmt::format("${{{}}}", inside));
}

}  // namespace stretto::compat
