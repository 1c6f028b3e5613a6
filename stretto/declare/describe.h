#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/declare/fields.h"

namespace stretto::declare {

// What is generated from a declaration. `fields` are bound to the struct whose values are printed: for help and schema,
// one with its defaults.

// The setting's current value; null when it is unset.
nlohmann::ordered_json value_of(const Field& setting);

// The settings as a YAML document from which read_fields restores the same values. Unset settings and those that do not
// apply (used_with) are left out. Readers of YAML 1.1 and 1.2 take every value for the same type.
std::string to_yaml(const std::vector<Field>& fields);

// One paragraph per setting: dotted key, help, type, choices or range, default.
std::string to_help(const std::vector<Field>& fields);

// The same for one section or setting ("optimizer", "optimizer.lr"); empty when there is none of that name.
std::string to_help(const std::vector<Field>& fields, const std::string& path);

// One line per section: its key and help.
std::string sections_help(const std::vector<Field>& fields);

// The dotted names of all sections and settings.
std::vector<std::string> all_names(const std::vector<Field>& fields);

// JSON schema, draft 2020-12. Where a value is not text, text with a ${VARIABLE} is allowed too. Settings that
// read_fields refuses beside the value of another one (used_with) are refused by the schema as well.
nlohmann::ordered_json to_schema(const std::vector<Field>& fields, const std::string& title);

}  // namespace stretto::declare
