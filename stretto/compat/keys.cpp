#include "stretto/compat/keys.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto::compat {
namespace {

using settings::YamlNode;

// The row of a key; for a section or a list, also the row "<key>.*".
const Key* find_row(const std::vector<Key>& table, const std::string& key, bool has_parts) {
  const auto matches = [&](const Key& row) {
    if (row.name.starts_with("*.")) return key == row.name.substr(2) || key.ends_with(row.name.substr(1));
    if (!row.name.ends_with(".*")) return row.name == key;
    const std::string_view section = row.name.substr(0, row.name.size() - 2);
    return (has_parts && key == section) || (key.starts_with(section) && key[section.size()] == '.');
  };
  const auto found = std::ranges::find_if(table, matches);
  return found == table.end() ? nullptr : &*found;
}

// Whether the table has rows for single keys of this section.
bool has_keys(const std::vector<Key>& table, const std::string& section) {
  return std::ranges::any_of(table, [&](const Key& row) {
    return !row.name.ends_with(".*") && row.name.starts_with(section + ".");
  });
}

// The keys and sections of the table with as many parts as `key`.
std::vector<std::string> names_at_level_of(const std::string& key, const std::vector<Key>& table) {
  const size_t parts = split(key, '.').size();
  std::vector<std::string> names;
  for (const Key& row : table) {
    std::vector<std::string_view> words = split(row.name, '.');
    std::erase(words, "*");
    if (words.size() < parts) continue;
    words.resize(parts);
    std::string name = fmt::format("{}", fmt::join(words, "."));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

// What an unknown key may be: keys of other sections with its name, or one with a similar name.
std::string suggest(const std::string& key, const std::vector<Key>& table) {
  const std::string name(split(key, '.').back());
  std::vector<std::string> elsewhere;
  for (const Key& row : table)
    if (row.name.ends_with("." + name)) elsewhere.push_back(fmt::format("\"{}\"", row.name));
  if (elsewhere.empty()) return did_you_mean(key, names_at_level_of(key, table));
  return fmt::format("; did you mean {}?", fmt::join(elsewhere, " or "));
}

bool is_unset(const YamlNode& node, std::string_view unset) {
  const bool has_parts = node.kind == YamlNode::Kind::sequence || node.kind == YamlNode::Kind::mapping;
  return node.kind == YamlNode::Kind::null || (has_parts && node.children.empty()) ||
         (node.kind == YamlNode::Kind::scalar && node.text == unset);
}

void read_node(const YamlNode& node, const std::string& key, const std::vector<Key>& table,
               std::string_view unset, compat::ForeignConfig& config) {
  if (is_unset(node, unset)) return;
  const bool is_mapping = node.kind == YamlNode::Kind::mapping;
  const bool is_section = key.empty() || has_keys(table, key);
  if (!is_section || !is_mapping) {
    const Key* row = find_row(table, key, is_mapping || node.kind == YamlNode::Kind::sequence);
    if (row != nullptr) return row->use({key, node}, config);
  }
  if (!is_section) {
    throw ConfigError("{}: {}: the key is unknown{}", node.key_place, key, suggest(key, table));
  }
  if (!is_mapping) {
    throw ConfigError("{}: {}: expected a section", node.place, key.empty() ? "the file" : key);
  }
  for (const YamlNode& child : node.children)
    read_node(child, key.empty() ? child.key : key + "." + child.key, table, unset, config);
}

// `text` with spaces in place of what DeepSpeed's reader, Hjson, accepts in JSON: comments, // and /* */, and
// commas before a closing bracket.
std::string as_json(std::string text) {
  bool in_string = false;
  size_t comma = std::string::npos;  // the last one, if only white space has followed
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    in_string = text[i] == '"';
    const bool line = text.compare(i, 2, "//") == 0, block = text.compare(i, 2, "/*") == 0;
    if (!line && !block) {
      if ((text[i] == '}' || text[i] == ']') && comma != std::string::npos) text[comma] = ' ';
      if (std::isspace(static_cast<unsigned char>(text[i])) == 0)
        comma = text[i] == ',' ? i : std::string::npos;
      continue;
    }
    const size_t found = line ? text.find('\n', i) : text.find("*/", i + 2);
    const size_t end = found == std::string::npos ? text.size() : found + (block ? 2 : 0);
    for (size_t at = i; at < end; ++at) {
      if (text[at] != '\n') text[at] = ' ';
    }
    i = end - 1;
  }
  return text;
}

void require_scalar(const Value& value) {
  if (value.node.kind != YamlNode::Kind::scalar)
    throw ConfigError("{}: expected a value, found a list or a section", value.place());
}

// Formats a scalar or a list of scalars in the syntax of --set.
std::string as_setting(const Value& value) {
  if (value.node.kind != YamlNode::Kind::sequence) {
    require_scalar(value);
    return value.text();
  }
  std::vector<std::string> texts;
  for (const YamlNode& child : value.node.children) texts.push_back(child.text);
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace

void set(compat::ForeignConfig& config, const Value& value, std::string setting, std::string setting_value) {
  config.settings.push_back({std::move(setting), std::move(setting_value), value.place()});
}

void in_host_memory(const Value& value, compat::ForeignConfig& config) {
  set(config, value, "training.device", "cpu");
  config.notes.push_back(
      fmt::format("{}: the ranks compute on the CPU, in whose memory their state is", value.place()));
}

int64_t number_in(const Value& value, int64_t low, int64_t high) {
  const auto number = parse_int(value.text());
  if (!number || *number < low || *number > high)
    refuse(value, fmt::format("expected a number from {} to {}", low, high));
  return *number;
}

void refuse(const Value& value, std::string_view reason) {
  throw ConfigError("{}: {}: {}", value.place(),
                    value.node.kind == YamlNode::Kind::scalar ? "\"" + value.text() + "\"" : "this section",
                    reason);
}

Key same_as(std::string_view name, std::string setting) {
  return {name, [setting = std::move(setting)](const Value& value, compat::ForeignConfig& config) {
            set(config, value, setting, as_setting(value));
          }};
}

Key choice(std::string_view name, std::string setting, std::vector<Meaning> meanings) {
  return {name, [setting = std::move(setting), meanings = std::move(meanings)](
                    const Value& value, compat::ForeignConfig& config) {
            require_scalar(value);
            std::vector<std::string> known;
            for (const Meaning& meaning : meanings) {
              if (meaning.value == value.text())
                return set(config, value, setting, std::string(meaning.setting_value));
              known.emplace_back(meaning.value);
            }
            refuse(value, fmt::format("expected one of {}{}", fmt::join(known, ", "),
                                      did_you_mean(value.text(), known)));
          }};
}

Key ignored(std::string_view name, std::string reason) {
  return {name, [reason = std::move(reason)](const Value& value, compat::ForeignConfig& config) {
            config.notes.push_back(fmt::format("{}: it is ignored: {}", value.place(), reason));
          }};
}

Key only(std::string_view name, std::vector<std::string_view> allowed, std::string reason) {
  const bool says_what_to_do = reason.find(';') != std::string::npos || reason.starts_with("use ");
  if (!says_what_to_do) reason += fmt::format("; set it to {}", allowed.front());
  return {name, [allowed = std::move(allowed), reason = std::move(reason)](const Value& value,
                                                                           compat::ForeignConfig&) {
            if (value.node.kind != YamlNode::Kind::scalar ||
                std::ranges::find(allowed, value.text()) == allowed.end())
              refuse(value, reason);
          }};
}

Key read_with_another(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig&) { require_scalar(value); }};
}

Key path(std::string_view name, std::string setting) {
  return {name, [setting = std::move(setting)](const Value& value, compat::ForeignConfig& config) {
            require_scalar(value);
            set(config, value, setting, with_home(value.text()));
          }};
}

Key refused(std::string_view name, std::string reason) {
  return {name, [reason = std::move(reason)](const Value& value, compat::ForeignConfig&) {
            refuse(value, reason);
          }};
}

// The key `enabled` that is true in a section, or in sections inside of it if it has none itself; null if
// there is none. `has_key`: becomes true if there is a key `enabled`.
static std::optional<Value> find_enabled(const Value& section, bool& has_key) {
  if (section.node.kind != YamlNode::Kind::mapping) return std::nullopt;
  if (const YamlNode* enabled = section.node.find("enabled")) {
    has_key = true;
    const Value value = {section.key + ".enabled", *enabled};
    return value.is_true() ? std::optional(value) : std::nullopt;
  }
  for (const YamlNode& child : section.node.children) {
    if (auto value = find_enabled({section.key + "." + child.key, child}, has_key)) return value;
  }
  return std::nullopt;
}

Key feature(std::string_view name, std::string reason, bool without_enabled) {
  return {name, [=, reason = std::move(reason)](const Value& value, compat::ForeignConfig&) {
            if (value.node.kind == YamlNode::Kind::scalar) {
              if (value.is_true()) refuse(value, reason + "; set it to false");
              return;
            }
            bool has_key = false;
            if (const auto enabled = find_enabled(value, has_key))
              refuse(*enabled, reason + "; set it to false");
            if (!has_key && without_enabled) refuse(value, reason + "; remove it");
          }};
}

Key offload_device(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            require_scalar(value);
            if (value.text() == "cpu") return in_host_memory(value, config);
            if (value.text() != "none" && value.text() != "nvme") refuse(value, "expected none, cpu or nvme");
          }};
}

Key single(std::string_view name, std::string what) {
  return {name, [what = std::move(what)](const Value& value, compat::ForeignConfig&) {
            const auto size = parse_int(value.text());
            if (size && (*size == 1 || *size == 0)) return;
            refuse(value, size && *size > 1 ? what + " is not available in this version; use 1"
                                            : "expected a number from 1");
          }};
}

Key layer_ranks(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            if (const int64_t ranks = number_in(value, 0, 4096); ranks > 1)
              set(config, value, "training.mesh.tp", value.text());
          }};
}

Key rank_count(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            const auto number = parse_int(value.text());
            if (!number || *number < 1 || *number > 4096)
              refuse(value, "expected a number of ranks, from 1 to 4096");
            config.ranks = *number;
            config.ranks_place = value.place();
          }};
}

Key host_count(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            config.hosts.nodes = number_in(value, 1, 4096);
            config.hosts.place = value.place();
          }};
}

Key host_rank(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            config.hosts.node_rank = number_in(value, 0, 4095);
            config.hosts.node_rank_place = value.place();
          }};
}

Key master_address(std::string_view name) {
  return {name,
          [](const Value& value, compat::ForeignConfig& config) { config.hosts.master_addr = value.text(); }};
}

Key master_port(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            config.hosts.master_port = number_in(value, 1, 65535);
          }};
}

Key visible_devices(std::string_view name) {
  return {name, [](const Value& value, compat::ForeignConfig& config) {
            if (value.text() == "all") return;
            const auto is_number = [](std::string_view part) {
              const auto number = parse_int(trim(part));
              return number && *number >= 0;
            };
            if (!std::ranges::all_of(split(value.text(), ','), is_number))
              refuse(value, "expected all, or numbers of GPUs such as \"0,1\"");
            config.visible_devices = value.text();
            config.visible_devices_place = value.place();
          }};
}

void read(const YamlNode& document, const std::vector<Key>& table, compat::ForeignConfig& config,
          std::string_view unset) {
  read_node(document, "", table, unset, config);
}

bool Value::is_true() const {
  const std::string word = lower_case(node.text);
  for (const char* yes : {"true", "yes", "on", "1"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0", ""})
    if (word == no) return false;
  throw ConfigError("{}: found \"{}\"; expected true or false", place(), node.text);
}

std::string with_home(const std::string& text) {
  if (text != "~" && !text.starts_with("~/")) return text;
  const char* home = std::getenv("HOME");
  return home == nullptr ? text : home + text.substr(1);
}

const YamlNode* find(const YamlNode& document, std::string_view key, std::string_view unset) {
  const YamlNode* node = &document;
  for (const std::string_view part : split(key, '.')) {
    if (node->kind != YamlNode::Kind::mapping) return nullptr;
    node = node->find(part);
    if (node == nullptr) return nullptr;
  }
  return is_unset(*node, unset) ? nullptr : node;
}

YamlNode parse_file(const std::filesystem::path& file, const std::string& what, compat::ForeignConfig& config,
                    RepeatedKeys repeated) {
  std::error_code failed;
  const auto status = std::filesystem::status(file, failed);
  if (!std::filesystem::is_regular_file(status)) {
    throw ConfigError("{}: {}; expected {}", file.string(),
                      std::filesystem::exists(status) ? "it is not a file" : "there is no such file", what);
  }
  config.files.push_back(file.string());
  std::string text = read_file(file);
  if (const std::string_view content = trim(text); content.starts_with('{') || content.starts_with("//")) {
    text = as_json(std::move(text));
    std::ranges::replace(text, '\t', ' ');
  }
  if (repeated == RepeatedKeys::refused) return settings::parse_yaml(text, file.string());
  return settings::parse_yaml(text, file.string(), config.warnings);
}

}  // namespace stretto::compat
