#include "stretto/compat/shell_expansion.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/shell_arithmetic.h"
#include "stretto/compat/shell_statements.h"

namespace stretto::compat {
namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

size_t name_size(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && is_of_name(text[size])) ++size;
  return size > 0 && std::isdigit(static_cast<unsigned char>(text[0])) == 0 ? size : 0;
}

std::string short_text(std::string_view text) {
  constexpr size_t most = 40;
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

// The names of variables in the inside of $((...)), in order.
std::vector<std::string> names_in(std::string_view inside) {
  std::vector<std::string> names;
  for (size_t at = 0; at < inside.size();) {
    size_t size = 0;
    while (at + size < inside.size() && is_of_name(inside[at + size])) ++size;
    const std::string name(inside.substr(at, size));
    if (name_size(name) > 0 && std::ranges::find(names, name) == names.end()) names.push_back(name);
    at += std::max<size_t>(1, size);
  }
  return names;
}

bool has_pattern(std::string_view word) {
  return !word.starts_with('"') && !word.starts_with('\'') &&
         word.find_first_of("*?[") != std::string_view::npos && word.find('$') == std::string_view::npos;
}

}  // namespace

size_t assigned_name(std::string_view word) {
  const size_t size = name_size(word);
  const std::string_view rest = word.substr(size);
  return size > 0 && (rest.starts_with('=') || rest.starts_with("+=")) ? size : 0;
}

// The words that expansion has made so far.
class ShellVariables::Fields {
 public:
  explicit Fields(bool splits) : splits_(splits) {}

  void add(std::string_view text) {
    current_ += text;
    has_current_ = true;
  }

  void add(const Value& value, bool is_quoted) {
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) splits_ ? end() : add(" ");
      if (is_quoted || !splits_) {
        add(value.items[i]);
      } else {
        add_words(value.items[i]);
      }
    }
  }

  std::vector<std::string> all() {
    end();
    return std::move(done_);
  }

 private:
  void end() {
    if (has_current_) done_.push_back(std::move(current_));
    current_.clear();
    has_current_ = false;
  }
  void add_words(std::string_view text) {
    bool first = true;
    if (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) end();
    for (const std::string_view word : split_words(text)) {
      if (!first) end();
      first = false;
      add(word);
    }
    if (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) end();
  }

  bool splits_;
  std::string current_;
  bool has_current_ = false;
  std::vector<std::string> done_;
};

ShellVariables::ShellVariables(std::filesystem::path folder, const std::map<std::string, std::string>& given)
    : folder_(std::move(folder)) {
  for (const auto& [name, value] : given) {
    given_.insert(name);
    values_[name] = {{value}};
  }
}

void ShellVariables::set_unknown(const std::string& name, const std::string& why) {
  if (!given_.contains(name)) values_[name] = {{mark(why)}};
}

void ShellVariables::unset(const std::string& name) {
  if (given_.contains(name)) return;
  values_[name] = {};
  origins_.erase(name);
}

void ShellVariables::assign(const std::string& word, const std::string& uncertain) {
  const size_t size = assigned_name(word);
  const std::string name = word.substr(0, size);
  if (given_.contains(name)) return;
  const bool appends = word[size] == '+';
  const std::string_view text = std::string_view(word).substr(size + (appends ? 2 : 1));
  const std::string origin = origin_of(text);
  Value value = appends ? look_up(name) : Value{};
  if (!uncertain.empty()) {
    value.items = {value.text() + mark(uncertain)};
  } else if (text.starts_with('(') && text.ends_with(')')) {
    for (const ShellStatement& statement : shell_statements(text.substr(1, text.size() - 2)))
      for (const std::string& item : statement.words)
        for (ShellWord& expanded : expand(item)) value.items.push_back(std::move(expanded.text));
    if (value.items.empty()) value.items.emplace_back();
  } else {
    value.items = {value.text() + expand_whole(text).text};
  }
  values_[name] = std::move(value);
  origins_.erase(name);
  if (!origin.empty()) origins_[name] = origin;
}

// " (line 3: C is 4, D is 2)" for a text with $((...)), "" for another.
std::string ShellVariables::origin_of(std::string_view text) const {
  if (text.find("$((") == std::string_view::npos) return "";
  std::string values;
  for (const std::string& name : names_in(text)) {
    const std::string value = look_up(name).text();
    if (!value.empty() && unknown_in(value).empty())
      values += fmt::format("{}{} is {}", values.empty() ? "" : ", ", name, short_text(value));
  }
  return values.empty() ? "" : fmt::format(" (line {}: {})", line_, values);
}

std::string ShellVariables::mark(const std::string& why) {
  reasons_.push_back(why);
  return fmt::format("\x01{}\x02", reasons_.size() - 1);
}

std::string ShellVariables::unknown_in(std::string_view text) const {
  const size_t begin = text.find('\x01'), end = text.find('\x02');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  const auto index = parse_int(text.substr(begin + 1, end - begin - 1));
  return index && static_cast<size_t>(*index) < reasons_.size() ? reasons_[static_cast<size_t>(*index)] : "";
}

ShellVariables::Value ShellVariables::look_up(const std::string& name) const {
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? Value{} : Value{{value}};
}

ShellVariables::Value ShellVariables::not_read(std::string_view text) {
  return {{mark(fmt::format("line {}: {} is not read", line_, short_text(text)))}};
}

std::vector<ShellWord> ShellVariables::expand(const std::string& word) {
  Fields fields(/*splits=*/true);
  expand_part(word, /*is_quoted=*/false, fields);
  std::vector<ShellWord> words;
  for (std::string& text : fields.all()) {
    const std::string unknown = unknown_in(text);
    words.push_back({std::move(text), unknown});
  }
  return words;
}

ShellWord ShellVariables::expand_whole(std::string_view text) {
  Fields fields(/*splits=*/false);
  expand_part(text, /*is_quoted=*/false, fields);
  const auto all = fields.all();
  return all.empty() ? ShellWord{} : ShellWord{all.front(), unknown_in(all.front())};
}

void ShellVariables::expand_part(std::string_view text, bool is_quoted, Fields& fields) {
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t end = shell_end(text, at);
    const std::string_view part = text.substr(at, end - at);
    if (c == '\'' && !is_quoted) {
      fields.add(part.substr(1, part.size() - 2));
    } else if (c == '"' && !is_quoted) {
      fields.add("");
      expand_part(part.substr(1, part.size() - 2), /*is_quoted=*/true, fields);
    } else if (c == '\\') {
      const bool keeps = is_quoted && part.size() == 2 &&
                         std::string_view("$`\"\\\n").find(part[1]) == std::string_view::npos;
      fields.add(keeps ? part : part.substr(1));
    } else if (c == '$' || c == '`') {
      size_t size = part.size();
      if (size == 1 && c == '$') {  // $NAME
        const std::string_view name = text.substr(at + 1);
        size = 1 + std::max<size_t>(name_size(name),
                                    !name.empty() && std::string_view("@*#?$!0123456789-").find(name[0]) !=
                                                         std::string_view::npos
                                        ? 1
                                        : 0);
      }
      fields.add(substitution(text.substr(at, size)), is_quoted);
      at += size;
      continue;
    } else if (c == '~' && at == 0 && !is_quoted && (text.size() == 1 || text[1] == '/')) {
      fields.add(look_up("HOME"), /*is_quoted=*/true);
    } else {
      fields.add(is_quoted ? text.substr(at, 1) : part);
      at += is_quoted ? 1 : part.size();
      continue;
    }
    at = end;
  }
}

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
  Fields fields(/*splits=*/false);
  expand_part(inside, /*is_quoted=*/true, fields);
  const auto words = fields.all();
  const std::string text = words.empty() ? "0" : words.front();
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

Truth ShellVariables::condition(std::vector<std::string> words) {
  bool is_negated = false;
  while (!words.empty() && words[0] == "!") {
    is_negated = !is_negated;
    words.erase(words.begin());
  }
  if (words.empty()) return Truth::yes();
  const std::string first = words[0];
  Truth truth;
  if (first.starts_with("((") && first.ends_with("))") && words.size() == 1) {
    const Value value = arithmetic(std::string_view(first).substr(2, first.size() - 4));
    truth = {value.text() != "0", unknown_in(value.text())};
  } else if (first == "[" || first == "[[" || first == "test") {
    words.erase(words.begin());
    if (first != "test" && !words.empty() && words.back() == (first == "[" ? "]" : "]]")) words.pop_back();
    truth = expression(words);
  } else if (first == "true" || first == "false" || first == ":") {
    truth.value = first != "false";
  } else {
    return {false, fmt::format("line {}: {} is not run", line_, short_text(first))};
  }
  if (is_negated) truth.value = !truth.value;
  return truth;
}

Truth ShellVariables::either(const std::vector<std::string>& words, size_t at, bool is_or) {
  const auto middle = words.begin() + static_cast<std::ptrdiff_t>(at);
  const Truth first = expression({words.begin(), middle}), second = expression({middle + 1, words.end()});
  for (const Truth& each : {first, second})
    if (!each.is_unknown() && each.value == is_or) return each;
  return first.is_unknown() ? first : second;
}

Truth ShellVariables::expression(const std::vector<std::string>& words) {
  for (const bool is_or : {true, false}) {
    for (size_t i = 1; i + 1 < words.size(); ++i) {
      if (words[i] == (is_or ? "||" : "&&") || words[i] == (is_or ? "-o" : "-a"))
        return either(words, i, is_or);
    }
  }
  if (words.size() > 1 && words[0] == "!") {
    Truth truth = expression({words.begin() + 1, words.end()});
    truth.value = !truth.value;
    return truth;
  }
  return comparison(words);
}

Truth ShellVariables::comparison(const std::vector<std::string>& words) {
  if (words.empty()) return Truth::no();
  const auto unread = [&] {
    return Truth{false, fmt::format("line {}: the condition {} is not read", line_, fmt::join(words, " "))};
  };
  if (words.size() == 2 && words[0] == "-v") {
    return {look_up(words[1]).is_set(), ""};
  }
  if (words.size() == 1) {
    const ShellWord word = expand_whole(words[0]);
    return {!word.text.empty(), word.unknown};
  }
  const ShellWord last = expand_whole(words.back());
  if (words.size() == 2) {
    if (!last.unknown.empty() && (words[0] == "-z" || words[0] == "-n"))
      return {words[0] == "-n", ""};  // it is set
    std::error_code failed;
    if (words[0] == "-z") return {last.text.empty(), last.unknown};
    if (words[0] == "-n") return {!last.text.empty(), last.unknown};
    if (words[0] == "-d") return {std::filesystem::is_directory(last.text, failed), last.unknown};
    if (words[0] == "-f" || words[0] == "-e")
      return {std::filesystem::exists(last.text, failed), last.unknown};
    return unread();
  }
  if (words.size() != 3) return unread();
  const ShellWord first = expand_whole(words[0]);
  const std::string unknown = first.unknown.empty() ? last.unknown : first.unknown;
  const std::string& how = words[1];
  if (how == "=" || how == "==" || how == "!=") {
    if (has_pattern(words[2])) return unread();
    return {(first.text == last.text) == (how != "!="), unknown};
  }
  const auto a = parse_int(trim(first.text)), b = parse_int(trim(last.text));
  const bool are_numbers = a.has_value() && b.has_value();  // else bash ends the condition with an error
  if (how == "-eq") return {are_numbers && *a == *b, unknown};
  if (how == "-ne") return {are_numbers && *a != *b, unknown};
  if (how == "-lt") return {are_numbers && *a < *b, unknown};
  if (how == "-le") return {are_numbers && *a <= *b, unknown};
  if (how == "-gt") return {are_numbers && *a > *b, unknown};
  if (how == "-ge") return {are_numbers && *a >= *b, unknown};
  return unread();
}

}  // namespace stretto::compat
