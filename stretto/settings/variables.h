#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "stretto/base/error.h"

namespace stretto::settings {

// Thrown for a value that refers to an unset environment variable.
class UnsetVariableError : public ConfigError {
 public:
  UnsetVariableError(const std::string& text, std::string setting)
      : ConfigError("{}", text), setting_(std::move(setting)) {}
  const std::string& setting() const { return setting_; }  // "data.test"; empty if unknown

 private:
  std::string setting_;
};

// Replaces each ${NAME} by the environment variable NAME, and each ${NAME:-default} by NAME or, if it is
// unset or empty, by the default, as in a shell. "$${" is a literal "${"; values of variables are not
// expanded recursively. Throws UnsetVariableError for an unset NAME without default, and ConfigError for
// malformed references.
std::string expand_variables(std::string_view text);

// The inverse of expand_variables: returns text that it expands to `text`.
std::string escape_variables(std::string_view text);

}  // namespace stretto::settings
