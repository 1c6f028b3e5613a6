#include <filesystem>
#include <system_error>

#include <fmt/ranges.h>

#include "stretto/base/strings.h"
#include "stretto/compat/shell_expansion.h"
#include "stretto/compat/shell_names.h"

// Whether [ ... ], [[ ... ]], test ... and ((...)) hold.
namespace stretto::compat {
namespace {

bool has_pattern(std::string_view word) {
  return !word.starts_with('"') && !word.starts_with('\'') &&
         word.find_first_of("*?[") != std::string_view::npos && word.find('$') == std::string_view::npos;
}

}  // namespace

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
