#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/config/fields.h"

namespace stretto::config {

// What a declaration can be turned into. `fields` are bound to the struct whose values are shown: for help
// and schema one with its defaults.

// The setting's present value; null when it is unset.
nlohmann::ordered_json value_of(const Field& setting);

// The settings as a YAML document that read_fields turns back into the same values. Unset settings and those
// that the present choices leave without meaning are left out.
std::string to_yaml(const std::vector<Field>& fields);

// One paragraph a setting: dotted key, help, type, choices or range, default.
std::string to_help(const std::vector<Field>& fields);

// JSON schema, draft 2020-12. Where a value is not text anyway, text with a ${VARIABLE} is allowed too.
nlohmann::ordered_json to_schema(const std::vector<Field>& fields, const std::string& title);

}  // namespace stretto::config
