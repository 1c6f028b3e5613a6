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
  bool is_true() const;  // as PyYAML reads it; throws ConfigError for what is neither true nor false
};

// The translation of a key of a foreign format: a row of its table.
struct Key {
  // Dotted. A name that ends in ".*" matches a whole section, and one that begins with "*." the same key in
  // any section.
  std::string_view name;
  std::function<void(const Value&, compat::ForeignConfig&)> use;
};

// Reasons of several formats.
inline constexpr const char* own_units = "units are the blocks of the model";
inline constexpr const char* no_sequence = "sequences are not divided among ranks";

// The kinds of rows. The value of the key is the value of a setting.
Key same_as(std::string_view name, std::string setting);
// Each value of the key in the list selects a value of the setting; any other is an error.
struct Meaning {
  std::string_view value, setting_value;
};
Key choice(std::string_view name, std::string setting, std::vector<Meaning> meanings);
// The value is a path; a leading ~ is the home folder, as for a shell.
Key path(std::string_view name, std::string setting);
// The key is ignored, because `reason`.
Key ignored(std::string_view name, std::string reason);
// The values `allowed` have no effect; any other is an error with this reason.
Key only(std::string_view name, std::vector<std::string_view> allowed, std::string reason);
// Another key's row reads the value.
Key read_with_another(std::string_view name);
// Any value is an error with this reason.
Key refused(std::string_view name, std::string reason);
// A section that switches something on that is not available, because `reason`: by `enabled: true` in it or
// in a section inside of it. `without_enabled`: whether a section without such a key switches it on.
Key feature(std::string_view name, std::string reason, bool without_enabled = false);
// The place of offloaded memory: none; cpu, the memory of the host; or nvme, files whose folder another key's
// row reads.
Key offload_device(std::string_view name);
// A size of a kind of parallelism that is not available: 1 has no effect, a larger one is an error.
Key single(std::string_view name, std::string what);
// The number of ranks among which each layer is divided: 0 and 1 have no effect.
Key layer_ranks(std::string_view name);

// The number of ranks on this host.
Key rank_count(std::string_view name);
// The number of hosts, the index of this host, and the rendezvous address.
Key host_count(std::string_view name);
Key host_rank(std::string_view name);
Key master_address(std::string_view name);
Key master_port(std::string_view name);
// The GPUs of this host, "0,2"; "all" has no effect.
Key visible_devices(std::string_view name);

// Adds a setting whose value `value` determines.
void set(compat::ForeignConfig& config, const Value& value, std::string setting, std::string setting_value);
// Offloading to the host's memory, which is that of CPU ranks: they run, with a note.
void in_host_memory(const Value& value, compat::ForeignConfig& config);
// The value as a number in this range. Throws ConfigError.
int64_t number_in(const Value& value, int64_t low, int64_t high);
[[noreturn]] void refuse(const Value& value, std::string_view reason);

// Translates every value of the document by the table, and adds the result to `config`. Skips values that are
// null or equal `unset`. Throws ConfigError for a key that is not in the table.
void read(const settings::YamlNode& document, const std::vector<Key>& table, compat::ForeignConfig& config,
          std::string_view unset = "");

// The value under a dotted key; null if it is absent, null or `unset`.
const settings::YamlNode* find(const settings::YamlNode& document, std::string_view key,
                               std::string_view unset = "");

// `text` with the home folder in place of a leading ~.
std::string with_home(const std::string& text);

// Whether a key may occur twice in a section: with PyYAML's rule the last value counts, with a warning.
enum class RepeatedKeys { refused, last_counts };

// Parses YAML, or JSON, which is YAML except for tabs between tokens and comments. Adds the file and the
// warnings to `config`. Throws ConfigError with file, line and column, IoError.
settings::YamlNode parse_file(const std::filesystem::path& file, const std::string& what,
                              compat::ForeignConfig& config,
                              RepeatedKeys repeated = RepeatedKeys::last_counts);

// Throws ConfigError if the document has a key of files for another option than `option`, "--accelerate".
void require_file_for(std::string_view option, const settings::YamlNode& document);

}  // namespace stretto::compat
