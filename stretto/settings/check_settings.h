#pragma once

#include <string>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/settings/fields.h"

namespace stretto::settings {

// A setting that is out of range, or contradicts others of its struct.
struct SettingError : ConfigError {
  SettingError(std::string setting, std::string what_is_wrong)
      : ConfigError("{}: {}", setting, what_is_wrong),
        key(std::move(setting)),
        problem(std::move(what_is_wrong)) {}
  std::string key;
  std::string problem;
};

// Throws SettingError for a value that violates the rule of its setting.
void check_values(const std::vector<Field>& fields);

// Checks the values of a struct filled by a program, and their combination by its check(), if it has one.
template <class T>
void check_settings(const T& settings) {
  T copy = settings;
  check_values(fields_of(copy));
  if constexpr (requires { settings.check(); }) settings.check();
}

// Like check_settings(settings), but throws ConfigError with `owner` before the message: "SGD: nesterov:
// ...".
template <class T>
void check_settings(const T& settings, std::string_view owner) {
  try {
    check_settings(settings);
  } catch (const SettingError& error) {
    throw ConfigError("{}: {}", owner, error.what());
  }
}

}  // namespace stretto::settings
