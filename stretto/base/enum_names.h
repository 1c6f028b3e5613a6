#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stretto {

// An enum whose values have names in files, options and messages. They are given once, next to the enum, in
// the order of its values, which count from 0:
//   enum class Cell { lstm, gru };
//   constexpr auto names_of(Cell) { return std::to_array<std::string_view>({"LSTM", "GRU"}); }
template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) {
  names_of(value)[0];
};

// The name of this value. REQUIRES: the value is one of the enum's.
template <NamedEnum Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<size_t>(value)];
}

// All names, in the order of the values.
template <NamedEnum Enum>
std::vector<std::string> enum_names() {
  const auto names = names_of(Enum());
  return {names.begin(), names.end()};
}

// The value of this name; nullopt for any other text.
template <NamedEnum Enum>
constexpr std::optional<Enum> find_enum(std::string_view name) {
  const auto names = names_of(Enum());
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// Throws ConfigError: "bf61" is not one of `names`; did you mean "bf16"?
[[noreturn]] void refuse_name(std::string_view name, std::span<const std::string> names);

// The value of this name. Throws ConfigError for any other text.
template <NamedEnum Enum>
Enum parse_enum(std::string_view name) {
  if (const auto found = find_enum<Enum>(name)) return *found;
  refuse_name(name, enum_names<Enum>());
}

}  // namespace stretto
