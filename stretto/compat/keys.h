#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/compat/foreign.h"
#include "stretto/settings/yaml.h"

namespace stretto::compat {

// A value in a foreign file, with its key.
struct Value {
  std::string key;  // dotted: "zero_optimization.stage"
  const settings::YamlNode& node;

  // "ds_config.json:3:14: zero_optimization.stage"
  std::string place() const { return node.place + ": " + key; }
  const std::string& text() const { return node.text; }
  bool is_true() const { return node.text == "true" || node.text == "True"; }
};

// The translation of a key of a foreign format: a row of its table.
struct Key {
  std::string_view name;  // dotted; a name that ends in ".*" matches a whole section
  std::function<void(const Value&, compat::ForeignConfig&)> use;
};

// The kinds of rows. The value of the key is the value of a setting.
Key same_as(std::string_view name, std::string setting);
// Each value of the key in the list selects a value of the setting; any other is an error.
struct Meaning {
  std::string_view value, setting_value;
};
Key choice(std::string_view name, std::string setting, std::vector<Meaning> meanings);
// The key is ignored, because `reason`.
Key ignored(std::string_view name, std::string reason);
// The values `allowed` have no effect; any other is an error with this reason.
Key only(std::string_view name, std::vector<std::string_view> allowed, std::string reason);
// Another key's row reads the value.
Key read_with_another(std::string_view name);

// The number of ranks on this host.
Key rank_count(std::string_view name);
// The number of hosts, the index of this host, and the rendezvous address.
Key host_count(std::string_view name);
Key host_rank(std::string_view name);
Key master_address(std::string_view name);
Key master_port(std::string_view name);

// Adds a setting whose value `value` determines.
void set(compat::ForeignConfig& config, const Value& value, std::string setting, std::string setting_value);
[[noreturn]] void refuse(const Value& value, std::string_view reason);

// Translates every value of the document by the table. Skips values that are null or equal `unset`. Throws
// ConfigError for a key that is not in the table.
compat::ForeignConfig read(const settings::YamlNode& document, const std::vector<Key>& table,
                           std::string_view unset = "");

// The value under a dotted key; null if it is absent, null or `unset`.
const settings::YamlNode* find(const settings::YamlNode& document, std::string_view key,
                               std::string_view unset = "");

// Parses YAML, or JSON, which is YAML except for tabs between tokens. Throws ConfigError with file, line and
// column, IoError.
settings::YamlNode parse_file(const std::filesystem::path& file, const std::string& what);

}  // namespace stretto::compat
