#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/declare/fields.h"
#include "stretto/declare/yaml.h"

namespace stretto::declare {

// The position at which each given setting was written: "optimizer.lr" -> "sst2.yaml:14:7" or "--set optimizer.lr=3e-5".
struct Origins {
  std::map<std::string, std::string> places;

  bool given(const std::string& path) const { return places.count(path) > 0; }
  // The beginning of an error message about the setting: "sst2.yaml:14:7: optimizer.lr", or the name alone of a default.
  std::string label(const std::string& path) const;
  // The setting within a sentence: "optimizer.lr (sst2.yaml:14:7)", or the name alone of a default.
  std::string mention(const std::string& path) const;

  // Positions are not part of a configuration's value.
  bool operator==(const Origins&) const { return true; }
};

// Writes the values in `document` into the structs that `fields` are bound to; settings it does not mention keep their
// values. ${VARIABLES} are expanded. Throws ConfigError that begins with the position for unknown settings (with the
// nearest name), wrong types, values out of range or not among the choices, and settings that do not apply (used_with).
Origins read_fields(const std::vector<Field>& fields, const YamlNode& document);

}  // namespace stretto::declare
