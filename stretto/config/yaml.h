#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::config {

// A YAML document as written: every scalar is still text, every node knows where it stands.
struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping, absent };  // absent: as if it were not in the document

  Kind kind = Kind::null;
  std::string place;               // "sst2.yaml:14:7", lines and columns counted from 1
  std::string text;                // of a scalar
  std::string key;                 // of a mapping's child
  std::string key_place;           // of a mapping's child
  std::vector<YamlNode> children;  // of a sequence or a mapping, in the order of the document

  // The child under `key` of a mapping, or nullptr.
  YamlNode* find(std::string_view wanted);
  const YamlNode* find(std::string_view wanted) const;
};

// Reads one YAML document from outside; `name` begins every place. Throws ConfigError with file, line and
// column for what is not YAML, and for what a configuration has no use for: more than 1 MiB, nesting deeper
// than 32 levels, no document or several, duplicate keys, keys that are not plain text, tags, aliases and
// control characters.
YamlNode parse_yaml(const std::string& text, const std::string& name);

}  // namespace stretto::config
