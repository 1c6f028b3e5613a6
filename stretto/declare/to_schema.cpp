#include <algorithm>
#include <cmath>

#include "stretto/declare/describe.h"
#include "stretto/declare/parse_value.h"

namespace stretto::declare {
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

// One schema for values that may be any of `alternatives`.
Json any_of(Json alternatives) {
  return alternatives.size() == 1 ? alternatives[0] : Json{{"anyOf", std::move(alternatives)}};
}

// A scalar of `type` under `rule`, or text that becomes one once its ${VARIABLE} is expanded.
Json scalar_alternatives(const std::string& type, const Rule& rule) {
  Json schema{{"type", type}};
  if (!rule.choices.empty()) schema["enum"] = rule.choices;
  if (std::isfinite(rule.lowest)) schema[rule.lowest_excluded ? "exclusiveMinimum" : "minimum"] = rule.lowest;
  if (std::isfinite(rule.highest))
    schema[rule.highest_excluded ? "exclusiveMaximum" : "maximum"] = rule.highest;
  const bool any_text = type == "string" && rule.choices.empty();
  Json alternatives = Json::array({std::move(schema)});
  if (!any_text) alternatives.push_back({{"$ref", "#/$defs/variable"}});
  return alternatives;
}

struct SlotSchema {
  const Rule& rule;

  Json operator()(std::monostate) const { return Json::object(); }
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

// The values of the selecting setting with which `condition` does not hold.
std::vector<std::string> excluding_values(const Field& selector, const Rule::Condition& condition) {
  std::vector<std::string> values;
  for (const std::string& choice : selector.rule.choices) {
    if (std::ranges::find(condition.values, choice) == condition.values.end()) values.push_back(choice);
  }
  return values;
}

// For each setting that applies only beside some values of another one: if that one has another value, it must be
// absent, or null where null is allowed.
Json conditions(const std::vector<Field>& fields) {
  Json rules = Json::array();
  for (const Field& field : fields) {
    const auto& condition = field.rule.condition;
    if (!condition) continue;
    const auto selector = std::ranges::find(fields, condition->key, &Field::key);
    if (selector == fields.end()) continue;
    const auto values = excluding_values(*selector, *condition);
    const auto default_value = value_of(*selector);
    const bool excluded_by_default =
        std::ranges::find(values, default_value.get<std::string>()) != values.end();
    Json test = {{"properties", {{condition->key, {{"enum", values}}}}}};
    if (!excluded_by_default) test["required"] = {condition->key};
    const Json absent = is_optional(field) ? Json{{"type", "null"}} : Json(false);
    rules.push_back({{"if", test}, {"then", {{"properties", {{field.key, absent}}}}}});
  }
  return rules;
}

Json object_schema(const std::vector<Field>& fields) {
  Json properties = Json::object();
  for (const Field& field : fields) {
    if (field.is_section()) {
      properties[field.key] = {{"description", field.help}};
      properties[field.key].update(object_schema(field.fields));
      properties[field.key]["type"] = {"object", "null"};
    } else {
      properties[field.key] = setting_schema(field);
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

}  // namespace stretto::declare
