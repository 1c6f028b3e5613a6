#pragma once

#include <string>

#include "stretto/settings/fields.h"
#include "stretto/settings/yaml.h"

namespace stretto::settings {

// Reads `node` into a setting's slot. Throws ConfigError that begins with the node's position and `path`.
void parse_value(const Field& setting, const YamlNode& node, const std::string& path);

// The type of a setting, for messages: "number", "list of 2 numbers".
std::string type_name(const Field& setting);

// Whether the setting can be unset by null.
bool is_optional(const Field& setting);

}  // namespace stretto::settings
