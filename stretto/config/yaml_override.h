#pragma once

#include <string_view>

#include "stretto/config/yaml.h"

namespace stretto::config {

// Puts one command-line setting "a.b=value" (the argument of --set) in place of what the document says, so
// that it is read and checked like it; its place is "--set a.b=value". A value that begins with [ { " or ' is
// YAML, any other is taken as it is, and null means "as if not given". Throws ConfigError.
void apply_override(YamlNode& document, std::string_view setting);

}  // namespace stretto::config
