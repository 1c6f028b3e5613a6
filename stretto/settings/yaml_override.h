#pragma once

#include <string_view>

#include "stretto/settings/yaml.h"

namespace stretto::settings {

// Sets a value of the document by "a.b=value" (the argument of --set); its position is "--set a.b=value". A
// value that begins with [ { " or ' is parsed as YAML, any other is text, and null removes the setting.
// Throws ConfigError.
void apply_override(YamlNode& document, std::string_view setting);

}  // namespace stretto::settings
