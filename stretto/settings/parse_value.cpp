#include "stretto/settings/parse_value.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <type_traits>

#include <fmt/ranges.h>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"
#include "stretto/settings/variables.h"

namespace stretto::settings {
namespace {

// One specialization per scalar type: its name (and plural, if there are lists of it) and its parser, whose
// errors do not include the position.
template <class T>
struct Scalar;

template <>
struct Scalar<bool> {
  static constexpr const char* name = "true or false";
  static bool parse(const std::string& text, const Rule&) {
    const std::string word = lower_case(text);
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word == "false" || word == "no" || word == "off") return false;
    throw ConfigError("\"{}\" is neither true nor false", text);
  }
};

// The names that are accepted instead of numbers: ", or false or true"; "" if there are none.
std::string or_names(const Rule& rule) {
  if (rule.spellings.empty()) return "";
  return fmt::format(", or {}", fmt::join(std::views::keys(rule.spellings), " or "));
}

void check_range(const std::string& text, double number, const Rule& rule) {
  if (!std::isfinite(number)) throw ConfigError("{} is not a finite number", text);
  if (rule.allows(number)) return;
  throw ConfigError("{} is out of range; it must be {}{}", text, rule.range_text(), or_names(rule));
}

// What a text is that is neither a number nor one of these names.
std::string no_number(const Rule& rule) {
  constexpr const char* number = "a whole number (of at most 64 bits)";
  if (rule.spellings.empty()) return fmt::format("not {}", number);
  return fmt::format("neither {} nor {}", number, fmt::join(std::views::keys(rule.spellings), " nor "));
}

template <>
struct Scalar<int64_t> {
  static constexpr const char* name = "whole number";
  static constexpr const char* plural = "whole numbers";
  static int64_t parse(const std::string& text, const Rule& rule) {
    const auto known = rule.spellings.find(lower_case(text));
    const auto number = parse_int(known == rule.spellings.end() ? text : known->second);
    if (!number) throw ConfigError("\"{}\" is {}", text, no_number(rule));
    check_range(text, static_cast<double>(*number), rule);
    return *number;
  }
};

template <>
struct Scalar<double> {
  static constexpr const char* name = "number";
  static constexpr const char* plural = "numbers";
  static double parse(const std::string& text, const Rule& rule) {
    const auto number = parse_double(text);
    if (!number) throw ConfigError("\"{}\" is not a number", text);
    check_range(text, *number, rule);
    return *number;
  }
};

template <>
struct Scalar<std::string> {
  static constexpr const char* name = "text";
  static constexpr const char* plural = "texts";
  static std::string parse(const std::string& text, const Rule& rule) {
    if (text.size() > 1024 && !rule.pattern.empty())
      throw ConfigError("a text of {} bytes is not {}", text.size(), rule.form);
    if (!rule.accepts(text)) throw ConfigError("\"{}\" is not {}", text, rule.form);
    const auto& choices = rule.choices;
    if (choices.empty() || !rule.choices_are_checked) return text;
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
    if (const auto known = rule.spellings.find(text); known != rule.spellings.end()) return known->second;
    const auto reason = rule.refusals.find(text);
    if (reason != rule.refusals.end()) throw ConfigError("\"{}\": {}", text, reason->second);
    refuse_name(text, choices);
  }
};

template <>
struct Scalar<std::filesystem::path> {
  static constexpr const char* name = "path";
  static std::filesystem::path parse(const std::string& text, const Rule&) { return expand_home(text); }
};

template <>
struct Scalar<FileOrSection> {
  static constexpr const char* name = "path of a file, or a section";
  static FileOrSection parse(const std::string& text, const Rule&) { return {expand_home(text)}; }
};

// What a value may be, for messages: "whole number, or false or true".
template <class T>
std::string expected(const Rule& rule) {
  return Scalar<T>::name + (std::is_arithmetic_v<T> ? or_names(rule) : "");
}

// Describes a node for messages.
std::string found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::scalar:
      return fmt::format("\"{}\"", node.text);
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a section";
    default:
      return "nothing";
  }
}

// The text of a scalar with its variables expanded.
std::string expanded_text(const YamlNode& node) {
  std::string text = expand_variables(node.text);
  if (!is_utf8(text))  // JSON and YAML, such as the resolved recipe, cannot represent it
    throw ConfigError("the value is not UTF-8 text; write it in UTF-8, and rename files with other names");
  return text;
}

// Returns parse(), whose errors get the position of `node` and the name of the setting in front.
template <class Parse>
auto with_place(const YamlNode& node, const std::string& path, const Parse& parse) {
  try {
    return parse();
  } catch (const UnsetVariableError& error) {
    throw UnsetVariableError(fmt::format("{}: {}: {}", node.place, path, error.what()), path);
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}: {}", node.place, path, error.what());
  }
}

template <class T>
T parse_scalar(const YamlNode& node, const Rule& rule, const std::string& path) {
  return with_place(node, path, [&] {
    if (node.kind != YamlNode::Kind::scalar)
      throw ConfigError("expected a value ({}), found {}", expected<T>(rule), found(node));
    const std::string text = expanded_text(node);
    if (text.empty()) throw ConfigError("the value is empty; give one or remove the line");
    return Scalar<T>::parse(text, rule);
  });
}

// A scalar as JSON: true, false or a number unless quoted, else text.
nlohmann::ordered_json json_scalar(const YamlNode& node) {
  const std::string text = expanded_text(node);
  if (node.is_quoted) return text;
  if (text == "true" || text == "false") return text == "true";
  if (const auto number = parse_int(text)) return *number;
  if (const auto number = parse_double(text); number && std::isfinite(*number)) return *number;
  return text;
}

// `path`: the dotted name of `node`, for messages.
nlohmann::ordered_json json_of(const YamlNode& node, const std::string& path) {
  nlohmann::ordered_json json;
  if (node.is_empty) {
    throw ConfigError("{}: {}: the value is empty; give one or remove the line",
                      node.key_place.empty() ? node.place : node.key_place, path);
  }
  if (node.kind == YamlNode::Kind::scalar) return with_place(node, path, [&] { return json_scalar(node); });
  if (node.kind == YamlNode::Kind::sequence) {
    json = nlohmann::ordered_json::array();
    for (const YamlNode& child : node.children) json.push_back(json_of(child, path));
  }
  if (node.kind == YamlNode::Kind::mapping) {
    json = nlohmann::ordered_json::object();
    for (const YamlNode& child : node.children)
      if (child.kind != YamlNode::Kind::absent) json[child.key] = json_of(child, path + "." + child.key);
  }
  return json;
}

template <class T>
std::vector<T> parse_list(const YamlNode& node, const Rule& rule, const std::string& path) {
  if (node.kind != YamlNode::Kind::sequence) {
    throw ConfigError("{}: {}: expected a list [a, b, ...] of {}, found {}", node.place, path,
                      Scalar<T>::plural, found(node));
  }
  std::vector<T> list;
  for (const YamlNode& child : node.children) list.push_back(parse_scalar<T>(child, rule, path));
  return list;
}

// Reads a node into a slot of any type.
struct ValueReader {
  const Rule& rule;
  const YamlNode& node;
  const std::string& path;

  void operator()(std::monostate) const {}
  template <class T>
  void operator()(T* value) const {
    *value = parse_scalar<T>(node, rule, path);
  }
  void operator()(const NameSlot& slot) const {
    std::optional<std::string> name;
    if (node.kind != YamlNode::Kind::null) name = parse_scalar<std::string>(node, rule, path);
    slot.set(name);
  }
  template <class T>
  void operator()(std::optional<T>* value) const {
    value->reset();
    if (node.kind != YamlNode::Kind::null) *value = parse_scalar<T>(node, rule, path);
  }
  void operator()(std::optional<FileOrSection>* value) const {
    value->reset();
    if (node.kind == YamlNode::Kind::mapping) {
      value->emplace().section = json_of(node, path);
    } else if (node.kind != YamlNode::Kind::null) {
      *value = parse_scalar<FileOrSection>(node, rule, path);
    }
  }
  template <class T>
  void operator()(std::vector<T>* value) const {
    *value = parse_list<T>(node, rule, path);
  }
  template <size_t size>
  void operator()(std::array<double, size>* value) const {
    const std::vector<double> list = parse_list<double>(node, rule, path);
    if (list.size() != size) {
      throw ConfigError("{}: {}: expected {} numbers, found {}", node.place, path, size, list.size());
    }
    std::copy(list.begin(), list.end(), value->begin());
  }
};

struct TypeName {
  std::string operator()(std::monostate) const { return "section"; }
  std::string operator()(const NameSlot&) const { return Scalar<std::string>::name; }
  template <class T>
  std::string operator()(T*) const {
    return Scalar<T>::name;
  }
  template <class T>
  std::string operator()(std::optional<T>*) const {
    return Scalar<T>::name;
  }
  template <class T>
  std::string operator()(std::vector<T>*) const {
    return fmt::format("list of {}", Scalar<T>::plural);
  }
  template <size_t size>
  std::string operator()(std::array<double, size>*) const {
    return fmt::format("list of {} numbers", size);
  }
};

struct IsOptional {
  template <class T>
  bool operator()(const T&) const {
    return false;
  }
  template <class T>
  bool operator()(std::optional<T>*) const {
    return true;
  }
  bool operator()(const NameSlot& slot) const { return slot.is_optional; }
};

}  // namespace

void parse_value(const Field& setting, const YamlNode& node, const std::string& path) {
  std::visit(ValueReader{setting.rule, node, path}, setting.slot);
}

std::string type_name(const Field& setting) { return std::visit(TypeName{}, setting.slot); }

bool is_optional(const Field& setting) { return std::visit(IsOptional{}, setting.slot); }

}  // namespace stretto::settings
