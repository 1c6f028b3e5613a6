#pragma once

#include <map>
#include <string>
#include <vector>

#include "stretto/config/fields.h"
#include "stretto/config/yaml.h"

namespace stretto::config {

// Where each explicitly given setting was written: "optimizer.lr" -> "sst2.yaml:14:7" or "--set
// optimizer.lr=3e-5".
struct Origins {
  std::map<std::string, std::string> places;

  bool given(const std::string& path) const { return places.count(path) > 0; }
  // What an error about the setting begins with: "sst2.yaml:14:7: optimizer.lr", or the bare path of a
  // default.
  std::string label(const std::string& path) const;
  // The setting inside a sentence: "optimizer.lr (sst2.yaml:14:7)", or the bare path of a default.
  std::string mention(const std::string& path) const;

  // Where a value was written is no part of what it says: configurations that differ in it alone are equal.
  bool operator==(const Origins&) const { return true; }
};

// Writes what `document` gives into the structs that `fields` are bound to; what it does not mention keeps
// its value. Text has its ${VARIABLES} expanded. Throws ConfigError, place first, for unknown settings (with
// the nearest name), wrong types, values out of range or not among the choices, and settings whose condition
// does not hold.
Origins read_fields(const std::vector<Field>& fields, const YamlNode& document);

}  // namespace stretto::config
