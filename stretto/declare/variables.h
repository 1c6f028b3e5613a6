#pragma once

#include <string>
#include <string_view>

namespace stretto::declare {

// `text` with each ${NAME} replaced by the environment variable NAME, and each ${NAME:-default} by NAME or,
// where that is unset or empty, by the default, as in a shell. "$${" is a literal "${"; values of variables
// are not expanded again. Throws ConfigError for an unset NAME without default and for malformed uses.
std::string expand_variables(std::string_view text);

// The inverse: text that expand_variables expands to `text`.
std::string escape_variables(std::string_view text);

}  // namespace stretto::declare
