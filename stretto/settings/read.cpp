#include "stretto/settings/read.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/settings/parse_value.h"

namespace stretto::settings {
namespace {

std::string join_path(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

class FieldReader {
 public:
  explicit FieldReader(const std::vector<Field>& root) : root_(root) {}

  void read_section(const std::vector<Field>& fields, const YamlNode& node, const std::string& path) {
    if (node.kind == YamlNode::Kind::null) return;  // "track:" with all lines below it commented out
    if (node.kind != YamlNode::Kind::mapping) {
      throw ConfigError("{}: {} must be a section: lines of \"key: value\", indented below it", node.place,
                        path.empty() ? "a recipe" : path);
    }
    for (const YamlNode& child : node.children) refuse_unknown(fields, child, path);
    for (const Field& field : fields) {
      const YamlNode* child = node.find(field.key);
      if (child == nullptr || child->kind == YamlNode::Kind::absent) continue;
      if (&field != declaration_in_use(fields, field.key)) continue;
      if (field.is_section()) {
        if (child->kind != YamlNode::Kind::null) require_in_use(field, fields, *child, path);
        read_section(field.fields, *child, join_path(path, field.key));
      } else {
        read_setting(field, fields, *child, path);
      }
    }
  }

  Origins take_origins() { return std::move(origins_); }

 private:
  // `fields`: all fields of the section.
  void read_setting(const Field& field, const std::vector<Field>& fields, const YamlNode& node,
                    const std::string& section) {
    const std::string path = join_path(section, field.key);
    if (node.kind == YamlNode::Kind::null && !is_optional(field)) {
      throw ConfigError("{}: {} has no value; give one ({}) or remove the line", node.place, path,
                        type_name(field));
    }
    parse_value(field, node, path);
    if (node.kind == YamlNode::Kind::null) return;
    require_in_use(field, fields, node, section);
    add_places(node, path);
  }

  // Also of the keys below a setting that is a section of free form.
  void add_places(const YamlNode& node, const std::string& path) {
    origins_.places[path] = node.place;
    if (node.kind != YamlNode::Kind::mapping) return;
    for (const YamlNode& child : node.children) add_places(child, join_path(path, child.key));
  }

  void require_in_use(const Field& field, const std::vector<Field>& fields, const YamlNode& node,
                      const std::string& section) const {
    if (field.rule.in_use()) return;
    const auto& condition = *field.rule.condition;
    std::vector<std::string> values;
    for (const Field* declaration : declarations(fields, field.key)) {
      const auto& more = declaration->rule.condition->values;
      values.insert(values.end(), more.begin(), more.end());
    }
    const std::string selector = join_path(section, condition.key);
    throw ConfigError("{}: {} does not apply with {}: {}, only with {}; remove {} or change {}",
                      field.is_section() ? node.key_place : node.place, join_path(section, field.key),
                      selector, *condition.chosen, fmt::join(values, " or "),
                      field.is_section() ? "the section" : "the line", selector);
  }

  void refuse_unknown(const std::vector<Field>& fields, const YamlNode& child,
                      const std::string& path) const {
    std::vector<std::string> known;
    for (const Field& field : fields) {
      if (field.key == child.key) return;
      if (std::ranges::find(known, field.key) == known.end()) known.push_back(field.key);
    }
    std::string hint = did_you_mean(child.key, known);
    if (hint.empty()) hint = section_hint(child.key);
    if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(known, ", "));
    throw ConfigError("{}: {} is not a setting{}", child.key_place, join_path(path, child.key), hint);
  }

  // A hint for a setting in the wrong section.
  std::string section_hint(const std::string& key) const {
    for (const Field& section : root_) {
      if (section.key == key) return fmt::format("; \"{}\" belongs to the top level", key);
      for (const Field& field : section.fields) {
        if (field.key == key) return fmt::format("; did you mean \"{}.{}\"?", section.key, key);
      }
    }
    return "";
  }

  const std::vector<Field>& root_;
  Origins origins_;
};

}  // namespace

std::string Origins::label(const std::string& path) const { return label(path, path); }

std::string Origins::label(const std::string& path, const std::string& near) const {
  const auto place = places.find(given(path) ? path : near);
  return place == places.end() ? path : place->second + ": " + path;
}

std::string Origins::mention(const std::string& path) const {
  const auto place = places.find(path);
  return place == places.end() ? path : fmt::format("{} ({})", path, place->second);
}

Origins read_fields(const std::vector<Field>& fields, const YamlNode& document) {
  FieldReader reader(fields);
  if (document.kind == YamlNode::Kind::null) throw ConfigError("{}: the document is empty", document.place);
  reader.read_section(fields, document, "");
  return reader.take_origins();
}

}  // namespace stretto::settings
