#include <algorithm>
#include <cmath>

#include "stretto/settings/describe.h"
#include "stretto/settings/parse_value.h"

namespace stretto::settings {
namespace {

using Json = nlohmann::ordered_json;

// The JSON type of each scalar.
template <class T>
constexpr const char* json_type = "string";
template <>
constexpr const char* json_type<bool> = "boolean";
template <>
constexpr const char* json_type<int64_t> = "integer";
template <>
constexpr const char* json_type<double> = "number";

// A schema that accepts any of `alternatives`.
Json any_of(Json alternatives) {
  return alternatives.size() == 1 ? alternatives[0] : Json{{"anyOf", std::move(alternatives)}};
}

// A scalar of `type` under `rule`, or text with a ${VARIABLE}.
Json scalar_alternatives(const std::string& type, const Rule& rule) {
  Json schema{{"type", type}};
  if (!rule.choices.empty()) schema["enum"] = rule.choices;
  if (!rule.pattern.empty()) schema["pattern"] = "^(?:" + rule.pattern + ")$";
  if (std::isfinite(rule.lowest)) schema[rule.lowest_excluded ? "exclusiveMinimum" : "minimum"] = rule.lowest;
  if (std::isfinite(rule.highest))
    schema[rule.highest_excluded ? "exclusiveMaximum" : "maximum"] = rule.highest;
  const bool any_text = type == "string" && rule.choices.empty() && rule.pattern.empty();
  Json alternatives = Json::array({std::move(schema)});
  // In YAML a text of digits is a number, and true is none.
  if (!rule.pattern.empty() && rule.accepts("1"))
    alternatives.push_back({{"type", "integer"}, {"minimum", 1}});
  if (type == "integer" && rule.spellings.contains("true")) alternatives.push_back({{"type", "boolean"}});
  if (!any_text) alternatives.push_back({{"$ref", "#/$defs/variable"}});
  return alternatives;
}

struct SlotSchema {
  const Rule& rule;

  Json operator()(std::monostate) const { return Json::object(); }
  Json operator()(const NameSlot& slot) const {
    if (slot.is_optional) return (*this)(static_cast<std::optional<std::string>*>(nullptr));
    return (*this)(static_cast<std::string*>(nullptr));
  }
  template <class T>
  Json operator()(T*) const {
    return any_of(scalar_alternatives(json_type<T>, rule));
  }
  template <class T>
  Json operator()(std::optional<T>*) const {
    Json alternatives = scalar_alternatives(json_type<T>, rule);
    alternatives.push_back({{"type", "null"}});
    return any_of(std::move(alternatives));
  }
  Json operator()(std::optional<FileOrSection>*) const {
    return any_of({{{"type", "string"}}, {{"type", "object"}}, {{"type", "null"}}});
  }
  template <class T>
  Json operator()(std::vector<T>*) const {
    return {{"type", "array"}, {"items", any_of(scalar_alternatives(json_type<T>, rule))}};
  }
  template <size_t size>
  Json operator()(std::array<double, size>*) const {
    Json schema = (*this)(static_cast<std::vector<double>*>(nullptr));
    schema["minItems"] = size;
    schema["maxItems"] = size;
    return schema;
  }
};

Json setting_schema(const Field& setting) {
  Json schema{{"description", setting.help}};
  schema.update(std::visit(SlotSchema{setting.rule}, setting.slot));
  const Json value = value_of(setting);
  if (!value.is_null()) schema["default"] = value;
  return schema;
}

// If `selector` has one of `values`, the setting `key` must match `schema`.
Json conditional(const Field& selector, const std::vector<std::string>& values, const std::string& key,
                 const Json& schema) {
  const auto default_value = value_of(selector).get<std::string>();
  Json test = {{"properties", {{selector.key, {{"enum", values}}}}}};
  if (std::ranges::find(values, default_value) == values.end()) test["required"] = {selector.key};
  return {{"if", test}, {"then", {{"properties", {{key, schema}}}}}};
}

// A condition per setting that applies only with some values of another one: with other values it must be
// absent, or null if it is optional. A setting with several declarations has a rule for each.
Json conditions(const std::vector<Field>& fields) {
  Json rules = Json::array();
  for (const Field& field : fields) {
    if (!field.rule.condition) continue;
    const auto selector = std::ranges::find(fields, field.rule.condition->key, &Field::key);
    const auto all = declarations(fields, field.key);
    if (selector == fields.end() || all[0] != &field) continue;
    std::vector<std::string> excluding = selector->rule.choices;
    for (const Field* declaration : all) {
      const auto& values = declaration->rule.condition->values;
      std::erase_if(excluding, [&](const std::string& value) {
        return std::ranges::find(values, value) != values.end();
      });
      if (all.size() > 1)
        rules.push_back(conditional(*selector, values, field.key, setting_schema(*declaration)));
    }
    const Json absent = is_optional(field) ? Json{{"type", "null"}} : Json(false);
    if (!excluding.empty()) rules.push_back(conditional(*selector, excluding, field.key, absent));
  }
  return rules;
}

// The part of a setting's schema that does not depend on other settings.
Json common_schema(const std::vector<Field>& fields, const std::string& key) {
  const Field& field = *declaration_in_use(fields, key);
  Json schema = setting_schema(field);
  if (declarations(fields, key).size() == 1) return schema;
  Json common = {{"description", field.help}};
  if (schema.contains("default")) common["default"] = schema["default"];
  return common;
}

Json object_schema(const std::vector<Field>& fields) {
  Json properties = Json::object();
  for (const Field& field : fields) {
    if (field.is_section()) {
      properties[field.key] = {{"description", field.help}};
      properties[field.key].update(object_schema(field.fields));
      properties[field.key]["type"] = {"object", "null"};
    } else {
      properties[field.key] = common_schema(fields, field.key);
    }
  }
  Json schema = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  Json rules = conditions(fields);
  if (!rules.empty()) schema["allOf"] = std::move(rules);
  return schema;
}

}  // namespace

Json to_schema(const std::vector<Field>& fields, const std::string& title) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(object_schema(fields));
  schema["$defs"]["variable"] = {{"type", "string"},
                                 {"pattern", "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}"}};
  return schema;
}

}  // namespace stretto::settings
