#pragma once

#include <string>

#include "stretto/config/fields.h"
#include "stretto/config/yaml.h"

namespace stretto::config {

// Reads `node` into a setting's slot. Throws ConfigError that begins with the node's place and `path`.
void parse_value(const Field& setting, const YamlNode& node, const std::string& path);

// What the setting holds, in words: "number", "list of 2 numbers".
std::string type_name(const Field& setting);

// True when a value can be taken away again by null.
bool is_optional(const Field& setting);

}  // namespace stretto::config
