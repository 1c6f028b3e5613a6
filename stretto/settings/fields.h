#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/settings/file_or_section.h"
#include "stretto/settings/one_of.h"
#include "stretto/settings/rule.h"

namespace stretto::settings {

// A type-erased reference to a OneOf or an optional one.
struct NameSlot {
  std::function<std::optional<std::string>()> get;
  // REQUIRES: `name` is one of the names, or empty if the setting is optional.
  std::function<void(const std::optional<std::string>& name)> set;
  bool is_optional;
};

// Makes the slot of `value`; its names become the choices of `rule`.
template <class Enum>
NameSlot name_slot(OneOf<Enum>& value, Rule& rule) {
  rule.choices = enum_names<Enum>();
  return {[&value] { return std::optional(value.name()); },
          [&value](const std::optional<std::string>& name) { value = name.value(); }, false};
}
template <class Enum>
NameSlot name_slot(std::optional<OneOf<Enum>>& value, Rule& rule) {
  rule.choices = enum_names<Enum>();
  return {[&value] { return value ? std::optional(value->name()) : std::nullopt; },
          [&value](const std::optional<std::string>& name) {
            value.reset();
            if (name) value.emplace(*name);
          },
          true};
}

// A pointer to the value of a setting. The type determines how the value is read and printed; "~" in a path
// is expanded. monostate: a section, which has fields instead of a value.
using Slot = std::variant<std::monostate, bool*, int64_t*, double*, std::string*, std::filesystem::path*,
                          std::optional<bool>*, std::optional<int64_t>*, std::optional<double>*,
                          std::optional<std::string>*, std::optional<std::filesystem::path>*,
                          std::vector<std::string>*, std::vector<int64_t>*, std::vector<double>*,
                          std::array<double, 2>*, std::optional<FileOrSection>*, NameSlot>;

// One declared setting or section, bound to a member of a struct.
struct Field {
  std::string key;
  std::string help;
  Slot slot;
  Rule rule;
  std::vector<Field> fields;  // of a section

  bool is_section() const { return std::holds_alternative<std::monostate>(slot); }
};

// Collects the declaration of a struct's fields. Reading and writing YAML, --set, --help and the JSON schema
// are all derived from it. A struct declares its fields with
//   void fields(settings::Fields& field) {
//     field("lr", lr, "learning rate", at_least(0));
//     field("on_spike", on_spike, "a OneOf, whose names are the choices");
//     field("nested", nested, "a struct that has fields() of its own");
//   }
class Fields {
 public:
  template <class T>
  void operator()(std::string key, T& value, std::string help, Rule rule = {}) {
    Field field{std::move(key), std::move(help), {}, std::move(rule), {}};
    if constexpr (requires(Fields & inner) { value.fields(inner); }) {
      Fields inner;
      value.fields(inner);
      field.fields = std::move(inner.list_);
    } else if constexpr (requires { name_slot(value, field.rule); }) {
      field.slot = name_slot(value, field.rule);
    } else {
      field.slot = &value;
    }
    list_.push_back(std::move(field));
  }

  // Adds `field`, or replaces the field with the same key.
  void put(Field field) {
    for (Field& existing : list_) {
      if (existing.key != field.key) continue;
      existing = std::move(field);
      return;
    }
    list_.push_back(std::move(field));
  }

  // Adds `field` even if its key exists; each of them applies with different values of another setting
  // (Rule::used_with).
  void add(Field field) { list_.push_back(std::move(field)); }

  const std::vector<Field>& list() const { return list_; }
  std::vector<Field> take() { return std::move(list_); }

 private:
  std::vector<Field> list_;
};

// The fields of `settings`, in the order of declaration. REQUIRES: `settings` outlives them and is not moved.
template <class T>
std::vector<Field> fields_of(T& settings) {
  Fields fields;
  settings.fields(fields);
  return fields.take();
}

// All declarations of `key`: more than one if each applies with different values of another setting.
std::vector<const Field*> declarations(const std::vector<Field>& fields, std::string_view key);

// The declaration of `key` that applies, or the first one; null if there is none.
const Field* declaration_in_use(const std::vector<Field>& fields, std::string_view key);

}  // namespace stretto::settings

namespace stretto {
namespace declare = settings;  // the name before version 0.2
}  // namespace stretto
