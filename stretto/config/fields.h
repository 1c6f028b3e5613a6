#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/config/rule.h"

namespace stretto::config {

// Where a setting's value lives. The type says how it is read and shown; a path has its "~" expanded.
// monostate: a section, which holds fields instead of a value.
using Slot = std::variant<std::monostate, bool*, int64_t*, double*, std::string*, std::filesystem::path*,
                          std::optional<bool>*, std::optional<int64_t>*, std::optional<double>*,
                          std::optional<std::string>*, std::optional<std::filesystem::path>*,
                          std::vector<std::string>*, std::vector<int64_t>*, std::vector<double>*,
                          std::array<double, 2>*>;

// One declared setting or section, bound to a living struct.
struct Field {
  std::string key;
  std::string help;
  Slot slot;
  Rule rule;
  std::vector<Field> fields;  // of a section

  bool is_section() const { return std::holds_alternative<std::monostate>(slot); }
};

// Collects the one declaration of a struct's fields, from which YAML reading and writing, --help and the JSON
// schema all derive. A struct declares itself with
//   void fields(config::Fields& field) {
//     field("lr", lr, "learning rate", at_least(0));
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
    } else {
      field.slot = &value;
    }
    list_.push_back(std::move(field));
  }

  std::vector<Field> take() { return std::move(list_); }

 private:
  std::vector<Field> list_;
};

// The fields of `settings`, in the order of their declaration. REQUIRES: `settings` outlives and outstays
// them.
template <class T>
std::vector<Field> fields_of(T& settings) {
  Fields fields;
  settings.fields(fields);
  return fields.take();
}

}  // namespace stretto::config
