#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::settings {

// A parsed YAML document: every scalar is text, every node has its position.
struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping, absent };  // absent: removed by an override

  Kind kind = Kind::null;
  std::string place;               // "sst2.yaml:14:7", lines and columns counted from 1
  std::string text;                // of a scalar
  bool is_quoted = false;          // a scalar that is text, even if it looks like a number
  bool is_empty = false;           // a null that is not written out: "key:", but not "key: null" or "key: ~"
  std::string key;                 // of a mapping's child
  std::string key_place;           // of a mapping's child
  std::vector<YamlNode> children;  // of a sequence or a mapping, in the order of the document

  // The child under `key` of a mapping, or nullptr.
  YamlNode* find(std::string_view wanted);
  const YamlNode* find(std::string_view wanted) const;
};

// Parses one untrusted YAML document; `name` begins every position. Throws ConfigError with file, line and
// column for invalid YAML and for what is not supported: more than 1 MiB, more than 32 levels, no document or
// several, duplicate keys, keys that are not plain text, tags, aliases, control characters, tabs in the
// indentation.
YamlNode parse_yaml(const std::string& text, const std::string& name);

// Like above, but the last value of a key that occurs twice in a mapping counts, as in PyYAML. Appends a line
// with both positions to `repeated` for each such key.
YamlNode parse_yaml(const std::string& text, const std::string& name, std::vector<std::string>& repeated);

// The unparsed values of a document by dotted name: {"optimizer.lr": "0.1", "track.tags": "[a, b]"}.
std::map<std::string, std::string> texts_by_name(const YamlNode& document);

}  // namespace stretto::settings
