#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/settings/fields.h"

namespace stretto::settings {

struct YamlNode;

// The position at which each setting was set: "optimizer.lr" -> "sst2.yaml:14:7" or "--set
// optimizer.lr=3e-5".
struct Origins {
  std::map<std::string, std::string> places;

  bool given(const std::string& path) const { return places.count(path) > 0; }
  // The beginning of an error message about a setting: "sst2.yaml:14:7: optimizer.lr", or only the name if it
  // has its default.
  std::string label(const std::string& path) const;
  // The same for a setting that may be missing: then with the position of the setting `near`.
  std::string label(const std::string& path, const std::string& near) const;
  // The setting within a message: "optimizer.lr (sst2.yaml:14:7)", or only the name if it has its default.
  std::string mention(const std::string& path) const;

  // Positions are ignored when configurations are compared.
  bool operator==(const Origins&) const { return true; }
};

// Reads the values in `document` into the structs that `fields` are bound to; other settings keep their
// values. ${VARIABLES} are expanded. Throws ConfigError, which begins with the position, for unknown settings
// (with the closest name), wrong types, values out of range or not among the choices, and settings that do
// not apply (used_with).
Origins read_fields(const std::vector<Field>& fields, const YamlNode& document);

}  // namespace stretto::settings
