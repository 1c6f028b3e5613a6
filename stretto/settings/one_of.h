#pragma once

#include <string>

#include <fmt/format.h>

#include "stretto/base/enum_names.h"

namespace stretto::settings {

// The value of a setting with a closed list of names (base/enum_names.h): an enum in code, its name in
// recipes. Programs may assign and compare either:
//   recipe.training.on_spike = OnSpike::skip;
//   recipe.training.on_spike = "skip";
template <NamedEnum Enum>
class OneOf {
 public:
  constexpr OneOf(Enum value) : value_(value) {}
  // Throws ConfigError, with the closest name, for any other name.
  OneOf(const std::string& name) : value_(parse_enum<Enum>(name)) {}
  OneOf(const char* name) : value_(parse_enum<Enum>(name)) {}

  constexpr operator Enum() const { return value_; }
  std::string name() const { return std::string(name_of(value_)); }
  operator std::string() const { return name(); }

  friend constexpr bool operator==(const OneOf&, const OneOf&) = default;
  friend constexpr bool operator==(const OneOf& one, Enum value) { return one.value_ == value; }

 private:
  Enum value_;
};

}  // namespace stretto::settings

template <stretto::NamedEnum Enum>
struct fmt::formatter<stretto::settings::OneOf<Enum>> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const stretto::settings::OneOf<Enum>& value, Context& context) const {
    return fmt::formatter<std::string>::format(value.name(), context);
  }
};
