#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/settings/fields.h"

namespace stretto::settings {

// Output generated from declarations. `fields` are bound to the struct whose values are printed; for help and
// schema, one with default values.

// The current value of a setting; null if it is unset.
nlohmann::ordered_json value_of(const Field& setting);

// The settings as a YAML document from which read_fields restores the same values. Unset settings and those
// that do not apply (used_with) are omitted. YAML 1.1 and 1.2 readers infer the same type for every value.
std::string to_yaml(const std::vector<Field>& fields);

// One paragraph per setting: dotted key, help, type, choices or range, default.
std::string to_help(const std::vector<Field>& fields);

// The help of one section or setting ("optimizer", "optimizer.lr"); empty if there is none of that name.
std::string to_help(const std::vector<Field>& fields, const std::string& path);

// One line per section: its key and help.
std::string sections_help(const std::vector<Field>& fields);

// The dotted names of all sections and settings.
std::vector<std::string> all_names(const std::vector<Field>& fields);

// JSON schema, draft 2020-12. Values that are not text may also be text with a ${VARIABLE}. Like read_fields,
// the schema rejects settings that do not apply (used_with).
nlohmann::ordered_json to_schema(const std::vector<Field>& fields, const std::string& title);

}  // namespace stretto::settings
