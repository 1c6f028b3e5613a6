#include "stretto/settings/yaml_override.h"

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto::settings {
namespace {

void set_places(YamlNode& node, const std::string& place) {
  node.place = place;
  node.key_place = place;
  for (YamlNode& child : node.children) set_places(child, place);
}

YamlNode parse_override_value(std::string_view value, const std::string& place) {
  constexpr std::string_view yaml_begins = "[{\"'";
  YamlNode node;
  if (value == "null") {
    node.kind = YamlNode::Kind::absent;
  } else if (!value.empty() && yaml_begins.find(value[0]) != std::string_view::npos) {
    node = parse_yaml(std::string(value), place + ": value");
  } else {
    node.kind = YamlNode::Kind::scalar;
    node.text = value;
  }
  set_places(node, place);
  return node;
}

YamlNode& child_for(YamlNode& parent, std::string_view key, const std::string& place) {
  if (parent.kind == YamlNode::Kind::null || parent.kind == YamlNode::Kind::absent) {
    parent.kind = YamlNode::Kind::mapping;
    parent.is_empty = false;
  }
  if (parent.kind != YamlNode::Kind::mapping) {
    throw ConfigError("{}: {} is not a section at {}, so it has no \"{}\"", place, parent.key, parent.place,
                      key);
  }
  if (YamlNode* child = parent.find(key)) return *child;
  YamlNode& child = parent.children.emplace_back();
  child.key = key;
  child.place = child.key_place = place;
  return child;
}

}  // namespace

void apply_override(YamlNode& document, std::string_view setting) {
  const std::string place = fmt::format("--set {}", setting);
  const size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    throw ConfigError("{}: expected KEY=VALUE, such as optimizer.lr=3e-5", place);
  }
  YamlNode* node = &document;
  for (const std::string_view key : split(trim(setting.substr(0, equals)), '.')) {
    if (key.empty()) throw ConfigError("{}: a key is missing before \"=\" or next to a \".\"", place);
    node = &child_for(*node, key, place);
  }
  YamlNode value = parse_override_value(trim(setting.substr(equals + 1)), place);
  value.key = node->key;
  *node = std::move(value);
}

}  // namespace stretto::settings
