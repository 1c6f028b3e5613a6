#include "stretto/settings/check_settings.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/strings.h"

namespace stretto::settings {
namespace {

struct ValueCheck {
  const Field& field;

  void operator()(std::monostate) const {}
  void operator()(const NameSlot&) const {}  // always has one of the names
  template <class T>
  void operator()(T* value) const {
    check(*value);
  }
  template <class T>
  void operator()(std::optional<T>* value) const {
    if (value->has_value()) check(**value);
  }
  template <class T>
  void operator()(std::vector<T>* values) const {
    for (const T& value : *values) check(value);
  }
  template <size_t size>
  void operator()(std::array<double, size>* values) const {
    for (const double value : *values) check(value);
  }

  void check(bool) const {}
  void check(const std::filesystem::path&) const {}
  void check(const FileOrSection&) const {}
  void check(int64_t value) const { check(static_cast<double>(value)); }
  void check(double value) const {
    if (field.rule.allows(value)) return;  // false for NaN
    throw SettingError(field.key,
                       fmt::format("{} is out of range; it must be {}", value, field.rule.range_text()));
  }
  void check(const std::string& value) const {
    const auto& choices = field.rule.choices;
    if (choices.empty() || !field.rule.choices_are_checked) return;
    if (std::ranges::find(choices, value) != choices.end()) return;
    throw SettingError(field.key, fmt::format("\"{}\" is not one of {}{}", value, fmt::join(choices, ", "),
                                              did_you_mean(value, choices)));
  }
};

}  // namespace

void check_values(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (field.rule.in_use()) std::visit(ValueCheck{field}, field.slot);
  }
}

}  // namespace stretto::settings
